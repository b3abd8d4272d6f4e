package differential

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/app/store"
	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/history/retention"
	"ashlar/internal/node"
	"ashlar/internal/sample"
	"ashlar/kv"
)

// The window of a mixed network: the trie nodes, states and blocks that are kept of those that were executed.
const (
	windowProofs  = 8
	windowState   = 20
	windowHistory = 50
	// triesLeft, stateLeft and blockLeft are the first ones.
	triesLeft = mixedLast - windowProofs + 1
	stateLeft = mixedLast - windowState + 1
	blockLeft = mixedLast - windowHistory + 1
)

// compareWindow moves the window of a network that is not served, and compares its answers with those of geth.
func compareWindow(t *testing.T, a node.Ashlar, genesis string, geth *node.Client, chain *sample.Chain) {
	t.Helper()
	if err := moveWindow(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	a.Config = mixedConfig(t, genesis, geth.URL, fmt.Sprintf(", retention: {proofs: %d, state: %d, history: %d}", windowProofs, windowState, windowHistory))
	p, kept := serve(t, a)
	t.Cleanup(p.Kill)
	awaitHead(t, kept, mixedHead)
	// What an answer says of a block that was executed changes where the window does.
	account := chain.Accounts[0]
	for number, want := range map[uint64]struct{ block, state, proof string }{
		blockLeft - 1: {"proven", "proven", "proven"},   // block and state are removed
		stateLeft - 1: {"executed", "proven", "proven"}, // its state is
		stateLeft:     {"executed", "executed", "proven"},
		triesLeft - 1: {"executed", "executed", "proven"}, // its trie nodes are
		triesLeft:     {"executed", "executed", "executed"},
		mixedLast:     {"executed", "executed", "executed"},
	} {
		expectVerified(t, kept, "eth_getProof", fmt.Sprintf(`[%q,[],%q]`, account, quantity(number)), want.proof)
		expectVerified(t, kept, "eth_simulateV1", fmt.Sprintf(`[{"blockStateCalls":[{"calls":[{"from":%q,"to":%[1]q}]}]},%q]`, account, quantity(number)), want.proof)
		expectVerified(t, kept, "eth_getBalance", fmt.Sprintf(`[%q,%q]`, account, quantity(number)), want.state)
		expectVerified(t, kept, "eth_getBlockByNumber", fmt.Sprintf(`[%q,true]`, quantity(number)), want.block)
		expectVerified(t, kept, "eth_getBlockReceipts", fmt.Sprintf(`[%q]`, quantity(number)), want.block)
		expectVerified(t, kept, "eth_getLogs", fmt.Sprintf(`[{"fromBlock":%q,"toBlock":%q}]`, quantity(number), quantity(number)), want.block)
	}
	for _, first := range []uint64{mixedFirst, blockLeft - 5, stateLeft - 5, triesLeft - 5} {
		all := questions(&generator{r: rand.New(rand.NewPCG(*seed, first+1)), c: chain, first: first}, 1)
		all = slices.DeleteFunc(all, notCompared)
		report(t, all, ask(t, all, geth, kept))
	}
}

// moveWindow removes what is older than the window at once. A service waits for a minute before it removes.
func moveWindow(ctx context.Context, a node.Ashlar) error {
	opened, err := store.Dir(a.Data).OpenNetwork(a.Network, kv.Options{})
	if err != nil {
		return err
	}
	history, err := archive.Open(ctx, opened)
	if err == nil {
		kept := retention.Window{Proofs: windowProofs, State: windowState, History: windowHistory}
		err = window.New(history, opened, kept, window.Options{Ancestors: 1}).Move(ctx)
	}
	return errors.Join(err, opened.Close())
}
