package differential

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/sample"
)

const (
	mixedFirst = 200 // first block with state
	mixedLast  = 350 // last block that is executed
	mixedHead  = 500 // of the node
)

// TestMixed asks about a network whose blocks were executed in the middle of the chain: it
// began with the state of a stopped geth, and everything before that, and after the last
// executed block, is proven over a geth with the whole chain. Every answer must be geth's.
// Without that geth the answers about executed blocks stay as they are, and others are refused. At the
// end a window removes most of what was executed, which is proven from then on.
func TestMixed(t *testing.T) {
	t.Parallel()
	genesis, file, geth, chain := gethChain(t, mixedHead, 8)
	executed, _ := splitChain(t, file, mixedLast)
	before, after := splitChain(t, executed, mixedFirst)
	begin := importIntoGeth(t, node.HashScheme, false, genesis, before)
	a := newAshlar(t, mixedConfig(t, genesis, geth.URL, ""))
	p, err := a.ImportFromGeth(t.Context(), genesis, begin.Data, after)
	awaitImport(t, p, err)

	p, mixed := serve(t, a)
	awaitHead(t, mixed, mixedHead)
	for _, first := range []uint64{0, mixedFirst - 10, mixedLast - 10} {
		all := questions(&generator{r: rand.New(rand.NewPCG(*seed, first)), c: chain, first: first}, 2)
		all = append(all, rareQuestions(&generator{r: rand.New(rand.NewPCG(*seed, first+2)), c: chain, first: first}, 1)...)
		all = slices.DeleteFunc(all, notCompared)
		report(t, all, ask(t, all, geth, mixed))
	}
	checkVerification(t, mixed, chain)
	p.Kill()

	a.Config = mixedConfig(t, genesis, "http://127.0.0.1:1", "")
	p, alone := serve(t, a)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the service without its nodes said:\n%s", p.Output())
		}
	})
	_, whole := serveAshlar(t, genesis, executed)
	awaitHead(t, alone, mixedLast)
	compareAlone(t, learn(t, genesis, executed, whole), whole, alone)
	p.Kill()
	compareWindow(t, a, genesis, geth, chain)
}

// notCompared reports whether a question is about parts of a state that it does not name, which
// cannot be proven if they are deep, or asks for a suggested tip.
func notCompared(q question) bool {
	switch q.Method {
	case "debug_storageRangeAt", "debug_accountRange", "debug_executionWitness":
		return true
	case "eth_fillTransaction":
		return !namesFees(q)
	}
	return false
}

// compareAlone compares the answers of a network that has lost its nodes with those of one that
// has executed the whole chain.
func compareAlone(t *testing.T, chain *sample.Chain, whole, alone *node.Client) {
	local := questions(&generator{r: rand.New(rand.NewPCG(*seed, 7)), c: chain, first: mixedFirst + 1}, 1)
	local = append(local, rareQuestions(&generator{r: rand.New(rand.NewPCG(*seed, 9)), c: chain, first: mixedFirst + 1}, 1)...)
	local = slices.DeleteFunc(local, func(q question) bool {
		return namesOlder(q) || strings.Contains(fmt.Sprint(q.Params), "earliest")
	})
	outcomes := ask(t, local, whole, alone)
	for i, o := range slices.Backward(outcomes) {
		unknown := o.geth.result == nil || o.geth.result == "0x" && strings.Contains(local[i].Method, "RawTransaction")
		if o.ashlar.err != nil && unknown && away.MatchString(o.ashlar.message()) { // only nodes can know that it does not exist
			local, outcomes = slices.Delete(local, i, i+1), slices.Delete(outcomes, i, i+1)
		}
	}
	report(t, local, outcomes)
	anything := questions(&generator{r: rand.New(rand.NewPCG(*seed, 8)), c: chain}, 1)
	refused := 0
	for i, o := range ask(t, anything, whole, alone) {
		switch {
		case len(o.differences) == 0:
		case o.ashlar.isLate():
		case o.ashlar.err != nil && away.MatchString(o.ashlar.message()):
			refused++
		default:
			t.Errorf("%s\n  whole against alone: %v", anything[i], o.differences)
		}
	}
	if refused == 0 {
		t.Error("no question about older blocks was refused")
	}
	var balance string
	err := alone.Call(t.Context(), &balance, "eth_getBalance", chain.Accounts[0], "0x5")
	want := fmt.Sprintf("the state of block 5 is not stored (the first block with state is %d), and the answer cannot be proven: no upstream can answer: try again later", mixedFirst)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("eth_getBalance of block 5: %q, %v, want %s", balance, err, want)
	}
}

// away are the messages about what no node could be asked for.
var away = regexp.MustCompile("the answer cannot be proven: ")

// checkVerification checks what a mixed network says of its answers.
func checkVerification(t *testing.T, c *node.Client, chain *sample.Chain) {
	t.Helper()
	account := chain.Accounts[0]
	for _, e := range []struct{ method, params, want string }{
		{"eth_getBalance", fmt.Sprintf(`[%q,"0x5"]`, account), "proven"},
		{"eth_getBalance", fmt.Sprintf(`[%q,%q]`, account, quantity(mixedFirst)), "executed"},
		{"eth_getBalance", fmt.Sprintf(`[%q,%q]`, account, quantity(mixedLast)), "executed"},
		{"eth_getBalance", fmt.Sprintf(`[%q,"latest"]`, account), "proven"},
		{"eth_getBlockByNumber", `["0x5",true]`, "proven"},
		{"eth_getBlockByNumber", fmt.Sprintf(`[%q,true]`, quantity(mixedFirst+1)), "executed"},
		{"eth_getBlockByNumber", fmt.Sprintf(`[%q,true]`, quantity(mixedHead+9)), "none"},
		{"eth_getBlockByHash", fmt.Sprintf(`[%q,false]`, chain.Blocks[mixedFirst+1].Hash), "executed"},
		{"eth_getLogs", fmt.Sprintf(`[{"fromBlock":%q,"toBlock":%q,"address":%q}]`, quantity(mixedFirst+1), quantity(mixedLast), account), "executed"},
		{"eth_getLogs", fmt.Sprintf(`[{"fromBlock":%q,"toBlock":%q,"address":%q}]`, quantity(mixedFirst-5), quantity(mixedFirst+5), account), "proven"},
		{"eth_getLogs", fmt.Sprintf(`[{"fromBlock":%q,"toBlock":%q,"address":%q}]`, quantity(mixedLast-5), quantity(mixedLast+5), account), "proven"},
		{"eth_getTransactionByHash", fmt.Sprintf(`["0x%064x"]`, 1), "none"},
		{"eth_blockNumber", `[]`, "none"},
	} {
		expectVerified(t, c, e.method, e.params, e.want)
	}
}

// expectVerified checks what a network says of an answer.
func expectVerified(t *testing.T, c *node.Client, method, params, want string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	response, err := http.Post(c.URL, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Ashlar-Verified"); got != want {
		t.Errorf("%s: verified %q, want %s", body, got, want)
	}
}

// mixedConfig returns a configuration of a network that reads what it lacks from a node. It may have further
// entries.
func mixedConfig(t *testing.T, genesis, upstream, more string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks: {test: {call_gas: 50000000, genesis: %s, check: state, upstream: [%q]%s}}\n", genesis, upstream, more)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// awaitHead returns when a server has reached a head.
func awaitHead(t *testing.T, c *node.Client, head uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	for {
		var number string
		err := c.Call(ctx, &number, "eth_blockNumber")
		if err == nil && number == quantity(head) {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(errors.Join(fmt.Errorf("the head is %s, expected %d", number, head), err))
		}
		time.Sleep(50 * time.Millisecond)
	}
}
