package differential

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/internal/node"
)

// upstreamEach is the number of questions per unit of weight to a network over geth.
const upstreamEach = 1

// byHash are methods that read a state in the order of its hashes, which nodes do not prove.
var byHash = []string{"debug_accountRange", "debug_storageRangeAt", "debug_getModifiedAccountsByHash", "debug_getModifiedAccountsByNumber"}

// TestOverGeth compares networks over geth with that geth: one that is proven, and one whose
// answers are forwarded.
func TestOverGeth(t *testing.T) {
	t.Parallel()
	genesis, _, geth, chain := gethChain(t, 200, 8)
	all := questions(&generator{r: rand.New(rand.NewPCG(*seed, 25)), c: chain}, upstreamEach)
	t.Run("proven", func(t *testing.T) {
		proven := serveOver(t, geth, chain.Head(), fmt.Sprintf("family: evm, check: state, genesis: %s, call_gas: 50000000", genesis))
		outcomes := ask(t, all, geth, proven)
		for i, q := range all {
			if slices.Contains(byHash, q.Method) && strings.HasPrefix(outcomes[i].ashlar.message(), "the answer cannot be proven") {
				outcomes[i].differences = nil
			}
		}
		report(t, all, outcomes)
	})
	t.Run("forwarded", func(t *testing.T) {
		var methods []string
		for _, k := range kinds() {
			methods = append(methods, k.method)
		}
		slices.Sort(methods)
		forwarded := serveOver(t, geth, chain.Head(), "methods: ["+strings.Join(slices.Compact(methods), ", ")+"]")
		outcomes := ask(t, all, geth, forwarded)
		for i := range outcomes {
			if outcomes[i].geth.err != nil && outcomes[i].ashlar.err != nil {
				outcomes[i].differences = nil // errors have the form of the specification, whatever a node says
			}
		}
		report(t, all, outcomes)
	})
}

// serveOver serves a network over a node with further entries of the configuration, and returns
// when it has the node's head.
func serveOver(t *testing.T, upstream *node.Client, head uint64, entries string) *node.Client {
	t.Helper()
	config := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks: {test: {upstream: %q, %s}}\n", upstream.URL, entries)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, client := serve(t, newAshlar(t, config))
	t.Cleanup(p.Kill)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var number string
		err := client.Call(t.Context(), &number, "eth_blockNumber")
		if err == nil && number == quantity(head) {
			return client
		}
		if time.Now().After(end) {
			t.Fatalf("the head is %s, %v, want %#x; the service's last words:\n%s", number, err, head, p.Output())
		}
	}
}
