package network

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/internal/fakenode"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// served is a network that is served and runs until the test ends.
type served struct {
	t         *testing.T
	network   family.Network
	described *jsonrpc.Methods
	methods   jsonrpc.Handlers
}

// serveChecked serves a network with some blocks, whose nodes are fake.
func serveChecked(t *testing.T, genesis *core.Genesis, blocks []*types.Block, entries *Entries) *served {
	t.Helper()
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, blocks)
	return serveStored(t, store, entries, false)
}

// serveStored serves the network in a store. If reading is set, another process writes it.
func serveStored(t *testing.T, store kv.Store, entries *Entries, reading bool) *served {
	t.Helper()
	entries.Checked = checkState
	return serveEntries(t, store, entries, reading)
}

// serveEntries is serveStored for a network that need not be checked.
func serveEntries(t *testing.T, store kv.Store, entries *Entries, reading bool) *served {
	t.Helper()
	n, err := Family{}.Open(t.Context(), store, entries, reading)
	if err != nil {
		t.Fatal(err)
	}
	methods, err := n.Serve(t.Context(), family.Service{Name: "checked", Data: t.TempDir(), Observe: func([]string) jsonrpc.Observer { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &served{t, n, methods, methods.Handlers()}
}

// weakest records how an answer is verified.
type weakest struct{ jsonrpc.Verification }

func (w *weakest) Weaken(v jsonrpc.Verification) { w.Verification = min(w.Verification, v) }

// try calls a method of the network, and returns how the answer is verified.
func (s *served) try(into any, method, params string) (jsonrpc.Verification, error) {
	verified := &weakest{jsonrpc.Executed}
	ctx, cancel := context.WithTimeout(context.WithValue(s.t.Context(), jsonrpc.VerifierKey{}, jsonrpc.Verifier(verified)), await.Patience)
	defer cancel()
	answer, err := s.methods[method](ctx, []byte(params), nil)
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	return verified.Verification, err
}

// call is try for calls that must not fail.
func (s *served) call(into any, method, params string) jsonrpc.Verification {
	s.t.Helper()
	verified, err := s.try(into, method, params)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, params, err)
	}
	return verified
}

// await waits until a block is the head.
func (s *served) await(head *types.Block) {
	s.t.Helper()
	for end := time.Now().Add(await.Patience); ; time.Sleep(5 * time.Millisecond) {
		var block struct{ Hash common.Hash }
		if _, err := s.try(&block, "eth_getBlockByNumber", `["latest",false]`); err == nil && block.Hash == head.Hash() {
			return
		}
		if time.Now().After(end) {
			status, err := s.network.Status(s.t.Context())
			s.t.Fatalf("waited in vain for the head %d %#x: %+v %+v, %v", head.NumberU64(), head.Hash(), status, status.Source, err)
		}
	}
}

// crossings are the chain of ingesttest and one that leaves it after four blocks, each with
// its genesis, and their receipts.
func crossings(t *testing.T) (right, wrong []*types.Block, receipts func(common.Hash) types.Receipts) {
	t.Helper()
	genesis, blocks := ingesttest.Crossing(t)
	all := make(map[common.Hash]types.Receipts)
	chainOf := func(blocks []*types.Block) []*types.Block {
		readReceipts(t, genesis, blocks, all)
		return append([]*types.Block{genesis.ToBlock()}, blocks...)
	}
	right, wrong = chainOf(blocks), chainOf(ingesttest.Diverging(t, 4))
	return right, wrong, func(hash common.Hash) types.Receipts { return all[hash] }
}

// readReceipts executes blocks and adds their receipts.
func readReceipts(t *testing.T, genesis *core.Genesis, blocks []*types.Block, to map[common.Hash]types.Receipts) {
	t.Helper()
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, blocks)
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		stored, err := a.Receipts(t.Context(), block.NumberU64(), nil)
		if err != nil {
			t.Fatal(err)
		}
		to[block.Hash()] = nil
		for i, tx := range block.Transactions() {
			receipt, err := stored.Whole(i, tx.Type())
			if err != nil {
				t.Fatal(err)
			}
			receipt.Bloom = types.CreateBloom(receipt)
			to[block.Hash()] = append(to[block.Hash()], receipt)
		}
	}
}

// startNode starts a fake node with a chain.
func startNode(t *testing.T, genesis *core.Genesis, receipts func(common.Hash) types.Receipts, blocks []*types.Block) *fakenode.Node {
	t.Helper()
	node, err := fakenode.New(fakenode.Options{ChainID: genesis.Config.ChainID.Uint64(), Raw: true, Receipts: receipts}, blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	node.Set(blocks, 0, 0)
	return node
}

func nodesOf(nodes ...*fakenode.Node) (all upstream.Nodes) {
	for _, n := range nodes {
		all = append(all, upstream.Node{URL: n.URL()})
	}
	return all
}

// manyBlocks returns the demo's blocks, with its genesis, and their receipts.
func manyBlocks(t *testing.T) (*core.Genesis, []*types.Block, func(common.Hash) types.Receipts) {
	t.Helper()
	genesis, blocks := ingesttest.Genesis(t), ingesttest.Chain(t)
	receipts := make(map[common.Hash]types.Receipts)
	readReceipts(t, genesis, blocks, receipts)
	return genesis, append([]*types.Block{genesis.ToBlock()}, blocks...), func(hash common.Hash) types.Receipts { return receipts[hash] }
}
