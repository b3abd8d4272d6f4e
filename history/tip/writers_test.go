package tip_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

// TestWritersTakeTurns makes each kind of change while blocks are added. A change that begins before another is visible would be
// lost, or undo that one.
func TestWritersTakeTurns(t *testing.T) {
	const blocks = 40
	settled, next, head := ref(10, 'a'), ref(11, 'a'), ref(12, 'a')
	several := func(first byte) (all []chain.Ref) {
		for n := range byte(blocks) {
			all = append(all, chain.Ref{Number: 13, Hash: common.Hash{first, n}})
		}
		return all
	}
	added, others, victims := several(1), several(2), []chain.Ref{ref(12, 'v'), ref(12, 'w')}
	keep := []common.Hash{}
	for _, block := range added {
		keep = append(keep, block.Hash)
	}
	for _, c := range []struct {
		kind   string
		change func(t *testing.T, of *tip.Tip)
		there  []chain.Ref
		gone   []chain.Ref
	}{
		{"Add", func(t *testing.T, of *tip.Tip) {
			for _, block := range others {
				grow(t, of, block, head)
			}
		}, others, nil},
		{"SetHead", func(t *testing.T, of *tip.Tip) {
			for n := range uint64(blocks) {
				if err := of.SetHead(t.Context(), head.Hash, ref(n, 's'), chain.Ref{}); err != nil {
					t.Error(err)
				}
				if got := of.Forkchoice().Safe; got != ref(n, 's') {
					t.Errorf("safe is %s, expected %s", got, ref(n, 's'))
				}
			}
		}, nil, nil},
		{"Prune", func(t *testing.T, of *tip.Tip) {
			if err := of.Prune(t.Context(), 1, keep...); err != nil {
				t.Error(err)
			}
		}, nil, victims},
		{"Settled", func(t *testing.T, of *tip.Tip) {
			if err := of.Settled(t.Context(), next); err != nil {
				t.Error(err)
			}
		}, nil, []chain.Ref{settled}},
		{"Overtaken", func(t *testing.T, of *tip.Tip) {
			if err := of.Overtaken(t.Context(), next); err != nil {
				t.Error(err)
			}
		}, nil, []chain.Ref{settled}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			store := openStore(t, vfs.NewMem())
			defer store.Close()
			of := openTip(t, store, settled)
			grow(t, of, next, settled)
			grow(t, of, head, next)
			setHead(t, of, head)
			for _, victim := range victims {
				grow(t, of, victim, next)
			}
			before := of.Len()
			var writers sync.WaitGroup
			writers.Go(func() {
				for _, block := range added {
					grow(t, of, block, head)
				}
			})
			for of.Len() < before+3 { // the other writer is at work
				runtime.Gosched()
			}
			c.change(t, of)
			writers.Wait()
			for _, block := range slices.Concat(added, c.there) {
				if !of.Has(block.Hash) {
					t.Errorf("block %s is missing", block)
				}
			}
			for _, block := range c.gone {
				if of.Has(block.Hash) {
					t.Errorf("block %s is there again", block)
				}
			}
		})
	}
}
