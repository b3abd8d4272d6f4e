package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/openrpc"
	"ashlar/limit"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
)

// numberedKeys is a [gateway.Keys] whose keys are the texts of their numbers, each of an account of its own.
type numberedKeys struct{}

func (numberedKeys) Check(text string) (*account.Key, bool) {
	key := new(account.Key)
	_, err := fmt.Sscanf(text, "%032x", &key.ID[0])
	return key, err == nil
}

// slowNode is an archive that is asked over HTTP, as a node.
type slowNode struct {
	handler http.Handler
	lacks   string // a method
	held    string // a method whose calls wait for release
	arrived atomic.Int32
	single  atomic.Int32 // questions for accounts or codes
	release chan struct{}
	takes   time.Duration // for several questions in one request, such as for the headers that link a block
}

func (n *slowNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if bytes.HasPrefix(body, []byte{'['}) {
		time.Sleep(n.takes)
	}
	if n.lacks != "" && bytes.Contains(body, []byte(n.lacks)) {
		body = bytes.ReplaceAll(body, []byte(n.lacks), []byte("eth_lacking"))
	}
	if bytes.Contains(body, []byte("eth_getProof")) || bytes.Contains(body, []byte("eth_getCode")) {
		n.single.Add(1)
	}
	if n.held != "" && bytes.Contains(body, []byte(n.held)) {
		n.arrived.Add(1)
		select {
		case <-n.release:
		case <-r.Context().Done(): // nobody waits for the answer any more
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	n.handler.ServeHTTP(w, r)
}

// gatewayOf serves networks behind a gateway. Requests that wait for many others have time enough on a busy machine; those
// that wait for each other fail after it.
func gatewayOf(t *testing.T, limits gateway.Limits, networks ...gateway.Network) *gateway.Handler {
	t.Helper()
	limits.RequestTime = await.Patience
	handler, err := gateway.New(gateway.Config{Keys: numberedKeys{}, Networks: networks, Limits: limits, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// counter is a contract that adds one to its slot 0.
var counter = common.HexToAddress("0xc0")

// counted is a chain whose blocks call the counter, and are more than a spine links at once.
var counted = sync.OnceValues(func() (*core.Genesis, []*types.Block) {
	key, err := crypto.HexToECDSA("b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291")
	if err != nil {
		panic(err)
	}
	sender := crypto.PubkeyToAddress(key.PublicKey)
	rules := *params.MergedTestChainConfig
	rules.PragueTime, rules.OsakaTime, rules.BPO1Time, rules.BPO2Time, rules.AmsterdamTime, rules.UBTTime = nil, nil, nil, nil, nil, nil
	genesis := &core.Genesis{
		Config: &rules, Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee), GasLimit: 30_000_000,
		Alloc: types.GenesisAlloc{sender: {Balance: big.NewInt(params.Ether)}, counter: {Code: common.FromHex("6000546001018060005560005260206000f3"), Balance: new(big.Int)}},
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 300, func(_ int, b *core.BlockGen) {
		b.AddTx(types.MustSignNewTx(key, b.Signer(), &types.DynamicFeeTx{
			ChainID: rules.ChainID, Nonce: b.TxNonce(sender), To: &counter, Gas: 100_000, GasFeeCap: b.BaseFee(),
		}))
	})
	return genesis, blocks
})

// asker asks the networks behind a gateway.
type asker struct {
	t       *testing.T
	handler *gateway.Handler
	proven  jsonrpc.Handlers
	url     string
	asking  sync.WaitGroup
}

// askProven serves an archive and, proven from it as from a node, the same chain without a block.
func askProven(t *testing.T, limits gateway.Limits, node *slowNode) *asker {
	t.Helper()
	genesis, blocks := counted()
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, blocks)
	archive := serveEntries(t, store, new(Entries), false)
	node.release = make(chan struct{})
	node.handler = gatewayOf(t, gateway.Limits{Heavy: 64}, gateway.Network{Name: "archive", Methods: archive.described})
	nodes := httptest.NewServer(node)
	t.Cleanup(nodes.Close)
	proven := serveChecked(t, genesis, nil, &Entries{Upstream: upstream.Nodes{{URL: nodes.URL + "/v3/" + fmt.Sprintf("%032x", 1)}}, Quorum: 1})
	proven.await(blocks[len(blocks)-1])
	_, described, err := openrpc.Describe(openrpc.Info{}, proven.described)
	if err != nil {
		t.Fatal(err)
	}
	handler := gatewayOf(t, limits, gateway.Network{Name: "archive", Methods: archive.described}, gateway.Network{Name: "proven", Methods: described})
	a := &asker{t: t, handler: handler, proven: proven.methods}
	server := httptest.NewServer(a.handler)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// ask asks a network with a key of its number, and returns the answer.
func (a *asker) ask(key int, network, method, params string) (string, error) {
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	response, err := http.Post(fmt.Sprintf("%s/%s/v3/%032x", a.url, network, key), "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Contains(answer, []byte(`"result":`)) {
		err = errors.New("it has no result")
	}
	return string(answer), err
}

// compare asks the proven network in a goroutine, and expects the answer of the archive.
func (a *asker) compare(key int, method, params string) {
	a.asking.Go(func() {
		got, err := a.ask(key, "proven", method, params)
		if err != nil {
			a.t.Errorf("%s %s: %.300s, %v", method, params, got, err)
			return
		}
		if want, err := a.ask(key, "archive", method, params); err != nil || got != want {
			a.t.Errorf("%s %s: %.300s, expected %.300s, %v", method, params, got, want, err)
		}
	})
}

// TestCallsWaitForNodesSideBySide: all calls of an account ask the node at once, though one heavy call may run, and calls of others
// run meanwhile.
func TestCallsWaitForNodesSideBySide(t *testing.T) {
	const calls = 16
	call := func(i int) string { return fmt.Sprintf(`{"from":"0x%040x","to":"%s"}`, i+1, counter) }
	for _, test := range []struct {
		method, held string
		params       func(i int) string
	}{
		{"eth_call", "eth_createAccessList", func(i int) string { return `[` + call(i) + `,"latest"]` }},
		{"eth_estimateGas", "eth_createAccessList", func(i int) string { return `[` + call(i) + `,"latest"]` }},
		{"debug_traceCall", "eth_createAccessList", func(i int) string { return `[` + call(i) + `,"latest"]` }},
		{"debug_traceCallMany", "eth_createAccessList", func(i int) string { return `[[{"transactions":[` + call(i) + `]}],{"blockNumber":"latest"}]` }},
		{"eth_simulateV1", "eth_createAccessList", func(i int) string { return `[{"blockStateCalls":[{"calls":[` + call(i) + `]}]},"latest"]` }},
		{"debug_traceBlockByNumber", "debug_executionWitness", func(i int) string { return fmt.Sprintf(`["%#x"]`, i+200) }},
		{"eth_getProof", "eth_getProof", func(i int) string { return fmt.Sprintf(`["0x%040x",[],"latest"]`, i+1) }},
	} {
		t.Run(test.method, func(t *testing.T) {
			node := &slowNode{held: test.held}
			a := askProven(t, gateway.Limits{Heavy: 1}, node)
			for i := range calls {
				a.compare(1, test.method, test.params(i))
			}
			await.Until(t, "all calls to be at the node", func() bool { return node.arrived.Load() == calls })
			if stats := a.handler.Stats(); stats.HeavyRunning != 0 || stats.LightRunning != calls {
				t.Errorf("%d heavy and %d light slots are taken, expected 0 and %d", stats.HeavyRunning, stats.LightRunning, calls)
			}
			if answer, err := a.ask(2, "archive", "eth_call", `[`+call(0)+`,"latest"]`); err != nil {
				t.Errorf("another account: %s, %v", answer, err)
			}
			close(node.release)
			a.asking.Wait()
		})
	}
}

// TestCallsThatWaitEndTogether: calls that wait for slots, for places of the executor and for the links to old blocks, in any order,
// do not wait for each other.
func TestCallsThatWaitEndTogether(t *testing.T) {
	const accounts, calls = 3, 8
	for _, limits := range []gateway.Limits{{Heavy: 1, Light: 1}, {Heavy: 1}, {Heavy: 8, Light: 4}} {
		for _, lacks := range []string{"", "eth_createAccessList"} {
			t.Run(fmt.Sprintf("%d heavy, %d light, no %s", limits.Heavy, limits.Light, lacks), func(t *testing.T) {
				a := askProven(t, limits, &slowNode{lacks: lacks, takes: 50 * time.Millisecond})
				receipts := func(key, number int) { a.compare(key, "eth_getBlockReceipts", fmt.Sprintf(`["%#x"]`, number)) } // heavy to the end
				for key := 1; key <= accounts; key++ {
					receipts(key, key)
				}
				for i := range calls {
					for key := 1; key <= accounts; key++ {
						number := 10 + 30*i + key
						from := key<<16 + i + 1
						a.compare(key, "eth_call", fmt.Sprintf(`[{"from":"0x%040x","to":"%s"},"%#x"]`, from, counter, number))
						a.compare(key, "debug_traceBlockByNumber", fmt.Sprintf(`["%#x"]`, number))
						receipts(key, number+5)
						a.compare(key, "eth_getBalance", fmt.Sprintf(`["0x%040x","%#x"]`, from, number))
					}
				}
				a.asking.Wait()
				await.Until(t, "all slots to be free", func() bool {
					stats := a.handler.Stats()
					return stats.HeavyRunning+stats.LightRunning+stats.HeavyWaiting+stats.LightWaiting == 0
				})
			})
		}
	}
}

// TestTracesUseWitnesses: nothing that a block reads is asked for singly if the node has its witness.
func TestTracesUseWitnesses(t *testing.T) {
	_, blocks := counted()
	raw, err := rlp.EncodeToBytes(blocks[249])
	if err != nil {
		t.Fatal(err)
	}
	for method, params := range map[string]string{
		"debug_traceBlockByNumber": `["0xc8"]`,
		"debug_traceBlock":         `["` + hexutil.Encode(raw) + `"]`,
	} {
		for _, lacks := range []string{"", "debug_executionWitness"} {
			node := &slowNode{lacks: lacks}
			a := askProven(t, gateway.Limits{}, node)
			node.single.Store(0)
			a.compare(1, method, params)
			a.asking.Wait()
			if asked := node.single.Load(); (asked > 0) != (lacks != "") {
				t.Errorf("%s of a node that lacks %q: %d requests for accounts or codes", method, lacks, asked)
			}
		}
	}
}

// TestDocumentsDoNotYield: the description of a network is made under a lock, with examples for which nodes are asked. A request for it
// that is heavy because it is long keeps its slot meanwhile: another one would wait for the lock with the slot that the first waits for.
func TestDocumentsDoNotYield(t *testing.T) {
	node := &slowNode{held: "eth_createAccessList"}
	a := askProven(t, gateway.Limits{Heavy: 1}, node)
	for key := 1; key <= 2; key++ {
		a.asking.Go(func() {
			if answer, err := a.ask(key, "proven", openrpc.Discover, "["+strings.Repeat(" ", jsonrpc.LongRequest)+"]"); err != nil {
				t.Errorf("%.300s, %v", answer, err)
			}
		})
	}
	await.Until(t, "both requests to be under way", func() bool {
		stats := a.handler.Stats()
		return node.arrived.Load() == 1 && stats.HeavyRunning+stats.HeavyWaiting+stats.LightRunning == 2
	})
	if stats := a.handler.Stats(); stats.LightRunning != 0 {
		t.Error("the first request has yielded its slot")
	}
	close(node.release)
	a.asking.Wait()
}

// lateSlot is a [limit.Yielder] whose slot comes back late.
type lateSlot struct{ late time.Duration }

// Yield implements [limit.Yielder].
func (s lateSlot) Yield(ctx context.Context, wait func() error) error {
	err := wait()
	select {
	case <-time.After(s.late):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestTracesTakeNoTimeInLine: the time that a trace may take begins when its call has a slot again.
func TestTracesTakeNoTimeInLine(t *testing.T) {
	const most = 5 * time.Second // far longer than the trace takes on a busy machine
	a := askProven(t, gateway.Limits{}, new(slowNode))
	ctx := context.WithValue(t.Context(), limit.YielderKey{}, lateSlot{most + time.Second})
	params := fmt.Sprintf(`[{"to":"%s"},"latest",{"tracer":"callTracer","timeout":"%s"}]`, counter, most)
	if out, err := a.proven["debug_traceCall"](ctx, json.RawMessage(params), nil); err != nil {
		t.Errorf("%.300s, %v", out, err)
	}
}
