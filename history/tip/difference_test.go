package tip_test

import (
	"fmt"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/internal/raced"
	"ashlar/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestDifference(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	of := openTip(t, store, ref(9, 's'))
	for _, b := range []struct{ block, parent chain.Ref }{
		{ref(10, 'a'), ref(9, 's')}, {ref(11, 'a'), ref(10, 'a')}, {ref(12, 'a'), ref(11, 'a')},
		{ref(11, 'b'), ref(10, 'a')}, {ref(10, 'c'), ref(9, 's')},
	} {
		grow(t, of, b.block, b.parent)
	}
	branch := func(head chain.Ref) *tip.Branch {
		found, err := of.Branch(head.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, c := range []struct {
		from, to       chain.Ref
		dropped, added []chain.Ref
	}{
		{ref(12, 'a'), ref(12, 'a'), nil, nil},
		{ref(9, 's'), ref(11, 'a'), nil, []chain.Ref{ref(10, 'a'), ref(11, 'a')}},
		{ref(12, 'a'), ref(10, 'a'), []chain.Ref{ref(12, 'a'), ref(11, 'a')}, nil},
		{ref(12, 'a'), ref(11, 'b'), []chain.Ref{ref(12, 'a'), ref(11, 'a')}, []chain.Ref{ref(11, 'b')}},
		{ref(10, 'c'), ref(12, 'a'), []chain.Ref{ref(10, 'c')}, []chain.Ref{ref(10, 'a'), ref(11, 'a'), ref(12, 'a')}},
	} {
		dropped, added, err := tip.Difference(branch(c.from), branch(c.to), nil)
		if err != nil || !slices.Equal(dropped, c.dropped) || !slices.Equal(added, c.added) {
			t.Errorf("from %s to %s: dropped %v, added %v, error %v; expected %v and %v", c.from, c.to, dropped, added, err, c.dropped, c.added)
		}
	}
}

// TestDifferenceFails: branches without a common block, and settled blocks that cannot be read.
func TestDifferenceFails(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	branch := func(settled chain.Ref) *tip.Branch { return openTip(t, store, settled).Forkchoice().Head }
	settled := func(number uint64) (chain.Ref, error) { return ref(number, 's'), nil }
	if dropped, added, err := tip.Difference(branch(ref(0, 'a')), branch(ref(0, 'b')), settled); err == nil {
		t.Errorf("from one genesis block to another: dropped %v, added %v", dropped, added)
	}
	for _, c := range [][2]chain.Ref{{ref(3, 'a'), ref(3, 'b')}, {ref(1, 's'), ref(3, 's')}, {ref(3, 's'), ref(1, 's')}, {ref(3, 'x'), ref(1, 'y')}} {
		reads := 0
		for ; ; reads++ {
			left := reads
			dropped, added, err := tip.Difference(branch(c[0]), branch(c[1]), func(number uint64) (chain.Ref, error) {
				if left--; left == -1 {
					return chain.Ref{}, kvtest.ErrBroken
				}
				return settled(number)
			})
			if left >= 0 { // all succeeded
				if err != nil {
					t.Error(err)
				}
				break
			}
			if err != kvtest.ErrBroken {
				t.Errorf("from %s to %s, read %d fails: dropped %v, added %v, %v, expected %v", c[0], c[1], reads, dropped, added, err, kvtest.ErrBroken)
			}
		}
		if reads == 0 {
			t.Errorf("from %s to %s: nothing is read", c[0], c[1])
		}
	}
}

// TestDifferenceLeadsFromHeadToHead lets random trees grow, settle and restart, and compares heads
// from time to time: the dropped and added blocks lead from the old chain to the new one.
func TestDifferenceLeadsFromHeadToHead(t *testing.T) {
	raced.Skip(t)
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			from, seen := w.tip.Forkchoice().Head, w.head.chain()
			for range 400 {
				w.step()
				if w.IntN(4) > 0 {
					continue
				}
				now := w.head.chain()
				to := w.tip.Forkchoice().Head
				dropped, added, err := tip.Difference(from, to, func(number uint64) (chain.Ref, error) {
					for _, known := range now {
						if known.Number == number && number <= w.settled.ref.Number {
							return known, nil
						}
					}
					return chain.Ref{}, fmt.Errorf("block %d is not settled", number)
				})
				if err != nil {
					t.Fatal(err)
				}
				for _, gone := range dropped {
					if seen[len(seen)-1] != gone {
						t.Fatalf("%s is dropped while %s is the head", gone, seen[len(seen)-1])
					}
					seen = seen[:len(seen)-1]
				}
				if len(dropped) > 0 && len(added) > 0 && dropped[len(dropped)-1] == added[0] {
					t.Errorf("%s is dropped and added again", added[0])
				}
				if seen = append(seen, added...); !slices.Equal(seen, now) {
					t.Fatalf("after %v and %v the chain is %v, expected %v", dropped, added, seen, now)
				}
				from = to
			}
		})
	}
}

// chain returns the block and its ancestors, oldest first.
func (b *modelBlock) chain() (refs []chain.Ref) {
	for ; b != nil; b = b.parent {
		refs = append(refs, b.ref)
	}
	slices.Reverse(refs)
	return refs
}
