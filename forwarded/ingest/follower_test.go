package ingest

import (
	"log/slog"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// ref returns a block reference from a number and a letter for the branch.
func ref(number uint64, branch byte) chain.Ref {
	return chain.Ref{Number: number, Hash: common.Hash{branch, byte(number)}}
}

// blocksTo returns the blocks of the branch a from 10 up to a number.
func blocksTo(head uint64) (blocks []*forwarded.Block) {
	for number := uint64(10); number <= head; number++ {
		blocks = append(blocks, &forwarded.Block{Ref: ref(number, 'a'), Parent: ref(number-1, 'a').Hash})
	}
	return blocks
}

// A block of this chain is final once a quorum of the nodes says so, and stays final. Fewer nodes
// cannot make a block final or safe.
func TestFinalNeedsAQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		quorum      int
		before      uint64 // the final block of the view before
		head        uint64
		final       []chain.Ref // what the nodes say
		want, safe  uint64
		safeOfNodes uint64
	}{
		"one node is enough":         {quorum: 1, head: 20, final: []chain.Ref{ref(12, 'a'), ref(15, 'a')}, want: 15},
		"the lower of two":           {quorum: 2, head: 20, final: []chain.Ref{ref(12, 'a'), ref(15, 'a')}, want: 12},
		"the middle of three":        {quorum: 2, head: 20, final: []chain.Ref{ref(18, 'a'), ref(12, 'a'), ref(15, 'a')}, want: 15},
		"another branch":             {quorum: 2, before: 11, head: 20, final: []chain.Ref{ref(12, 'a'), ref(15, 'b')}, want: 11},
		"another branch, one node":   {quorum: 1, before: 11, head: 20, final: []chain.Ref{ref(15, 'b')}, want: 11},
		"above the head":             {quorum: 1, before: 11, head: 20, final: []chain.Ref{ref(21, 'a')}, want: 11},
		"older than what is here":    {quorum: 1, head: 20, final: []chain.Ref{ref(5, 'a')}, want: 5},
		"nothing":                    {quorum: 1, head: 20, final: []chain.Ref{{}}, want: 0},
		"it does not go back":        {quorum: 2, before: 14, head: 20, final: []chain.Ref{ref(12, 'a'), ref(13, 'a')}, want: 14},
		"but not above a lower head": {quorum: 1, before: 14, head: 12, final: []chain.Ref{ref(11, 'a')}, want: 12},
		"safe is at least final":     {quorum: 1, head: 20, final: []chain.Ref{ref(12, 'a')}, safeOfNodes: 11, want: 12},
		"safe":                       {quorum: 2, head: 20, final: []chain.Ref{ref(12, 'a'), ref(12, 'a')}, safeOfNodes: 17, want: 12, safe: 17},
	} {
		t.Run(name, func(t *testing.T) {
			f := New(Config{Quorum: c.quorum})
			var heads []upstream.Head
			for _, final := range c.final {
				head := upstream.Head{Ref: ref(c.head, 'a'), Finalized: final}
				if c.safeOfNodes > 0 {
					head.Safe = ref(c.safeOfNodes, 'a')
				}
				heads = append(heads, head)
			}
			var present *forwarded.View
			if c.before > 0 {
				present = forwarded.NewView(blocksTo(20), c.before, c.before)
			}
			safe, finalized := f.final(present, heads, blocksTo(c.head))
			if want := max(c.want, c.safe); finalized != c.want || safe != want {
				t.Errorf("safe is %d and final %d, expected %d and %d", safe, finalized, want, c.want)
			}
		})
	}
}

// A head that is not higher replaces the present one only when no node has that one: at once if it is
// as high, else after a while.
func TestFollows(t *testing.T) {
	f := New(Config{Patience: time.Hour, Log: slog.New(slog.DiscardHandler)})
	present := forwarded.NewView(blocksTo(20), 0, 0)
	follows := func(what string, want bool, elected chain.Ref, others ...chain.Ref) {
		t.Helper()
		heads := []upstream.Head{{Ref: elected}}
		for _, other := range others {
			heads = append(heads, upstream.Head{Ref: other})
		}
		if got := f.follows(present, elected, heads); got != want {
			t.Errorf("%s: %t, expected %t", what, got, want)
		}
	}
	follows("a higher one", true, ref(21, 'b'))
	follows("the same", false, ref(20, 'a'))
	follows("as high, and a node has the present one", false, ref(20, 'b'), ref(20, 'a'))
	follows("as high", true, ref(20, 'b'), ref(19, 'a'))
	follows("as high, and a node is further", false, ref(20, 'b'), ref(21, 'a'))

	follows("a lower one", false, ref(19, 'a'))
	f.lost = f.lost.Add(-2 * time.Hour)
	follows("a lower one, and a node has the present one again", false, ref(19, 'a'), ref(20, 'a'))
	follows("a lower one anew", false, ref(19, 'a'))
	f.lost = f.lost.Add(-2 * time.Hour)
	follows("a lower one after a while", true, ref(19, 'a'))
	follows("another lower one", false, ref(19, 'b'))
	f.lost = f.lost.Add(-2 * time.Hour)
	follows("a higher one after a while", true, ref(21, 'a'))
	follows("a lower one after that", false, ref(19, 'a'))
}
