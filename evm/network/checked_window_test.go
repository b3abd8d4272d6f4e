package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/archive/window"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/history/retention"
	"ashlar/history/tip"
	"ashlar/internal/await"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/core/types"
)

// Blocks that a window removes are answered from the nodes from then on: while the network is served, by the
// process that removes them and by others. The answers stay the same.
func TestCheckedWindow(t *testing.T) {
	genesis, blocks, receipts := manyBlocks(t)
	last := len(blocks) - 1
	w := retention.Window{State: 8, History: 12}
	kept := uint64(last) - uint64(w.History) + 1
	for _, test := range []struct {
		name             string
		reading, follows bool
	}{
		{"writer", false, false},
		{"writer that follows", false, true},
		{"reader", true, false},
		{"reader of what is followed", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := startNode(t, genesis, receipts, blocks)
			store := ingesttest.Store(t)
			importBlocks(t, store, genesis, blocks[1:])
			entries := &Entries{Upstream: nodesOf(node), Quorum: 1}
			if test.follows {
				entries.Source = family.Sources{node.URL()}
			}
			s := serveStored(t, store, entries, test.reading)
			s.await(blocks[last])
			before := s.askEach(t, blocks, func(uint64) jsonrpc.Verification { return jsonrpc.Executed })
			// The process that removes has the archive that it serves.
			remover := window.New(s.network.(*network).archive, store, w, window.Options{Ancestors: 1})
			if test.reading {
				a, err := archive.Open(t.Context(), store)
				if err != nil {
					t.Fatal(err)
				}
				remover = window.New(a, store, w, window.Options{Ancestors: 1})
			}
			if err := remover.Move(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.awaitFirst(kept)
			after := s.askEach(t, blocks, func(number uint64) jsonrpc.Verification {
				if number == 0 || number >= kept { // its block is stored, even if its state is not
					return jsonrpc.Executed
				}
				return jsonrpc.Proven
			})
			for question, want := range before {
				if after[question] != want {
					t.Errorf("%s: %.300s, before the window was moved %.300s", question, after[question], want)
				}
			}
		})
	}
}

// awaitFirst waits until a block is the first one that is stored.
func (s *served) awaitFirst(first uint64) {
	s.t.Helper()
	for end := time.Now().Add(await.Patience); s.network.(*network).archive.Extent().Blocks != first; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for the first block %d: %+v", first, s.network.(*network).archive.Extent())
		}
	}
}

// askEach asks about each block of a chain, its receipts and logs, and checks how the answers are verified.
func (s *served) askEach(t *testing.T, blocks []*types.Block, verified func(number uint64) jsonrpc.Verification) map[string]string {
	t.Helper()
	answers := make(map[string]string)
	for _, block := range blocks {
		at := fmt.Sprintf("%#x", block.NumberU64())
		questions := map[string]string{
			"eth_getBlockByNumber": fmt.Sprintf("[%q,true]", at),
			"eth_getBlockByHash":   fmt.Sprintf("[%q,false]", block.Hash()),
			"eth_getBlockReceipts": fmt.Sprintf("[%q]", at),
			"eth_getLogs":          fmt.Sprintf(`[{"fromBlock":%q,"toBlock":%q}]`, at, at),
		}
		for method, params := range questions {
			var answer json.RawMessage
			if got, want := s.call(&answer, method, params), verified(block.NumberU64()); got != want {
				t.Errorf("%s %s is %s, want %s", method, params, got, want)
			}
			answers[method+params] = withoutDifficulty(t, answer)
		}
	}
	return answers
}

// withoutDifficulty removes the total difficulty of a block, which nodes do not prove.
func withoutDifficulty(t *testing.T, answer json.RawMessage) string {
	t.Helper()
	var block map[string]json.RawMessage
	if json.Unmarshal(answer, &block) != nil {
		return string(answer)
	}
	delete(block, "totalDifficulty")
	text, err := json.Marshal(block)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A reader ends when the network that it reads is rewound, as it does if it executes.
func TestCheckedReaderEndsAtRewind(t *testing.T) {
	genesis, blocks, receipts := manyBlocks(t)
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, blocks[1:])
	entries := &Entries{Checked: checkState, Upstream: nodesOf(startNode(t, genesis, receipts, blocks)), Quorum: 1}
	n, err := Family{}.Open(t.Context(), store, entries, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Serve(t.Context(), family.Service{Name: "checked", Data: t.TempDir(), Observe: func([]string) jsonrpc.Observer { return nil }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	if _, err := (Family{}).Rewind(t.Context(), store, 20, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, tip.ErrRemoved) {
		t.Errorf("after a rewind the reader ended with %v, want %v", err, tip.ErrRemoved)
	}
}
