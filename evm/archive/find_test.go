package archive

import (
	"errors"
	"slices"
	"testing"
)

// TestFind finds every block and transaction by its hash, and none by others.
func TestFind(t *testing.T) {
	g := newGrower(t, 500)
	for range 20 {
		g.block()
	}
	a := grown(t, g)
	for number, delta := range g.blocks {
		if found, err := a.FindBlock(t.Context(), delta.Block.Hash()); err != nil || found != uint64(number) {
			t.Errorf("block %d is found as %d, %v", number, found, err)
		}
		alike := delta.Block.Hash() // in all that is indexed
		alike[31]++
		if _, err := a.FindBlock(t.Context(), alike); !errors.Is(err, ErrNotFound) {
			t.Errorf("a hash like that of block %d: %v, want ErrNotFound", number, err)
		}
		for i, transaction := range delta.Block.Transactions() {
			var places []Place
			err := a.FindTransaction(t.Context(), transaction.Hash(), func(place Place) (bool, error) {
				places = append(places, place)
				return false, nil
			})
			if err != nil || !slices.Contains(places, Place{Number: uint64(number), Index: i}) {
				t.Errorf("transaction %d of block %d is found at %v, %v", i, number, places, err)
			}
		}
	}
}

// TestFindInBranches asks an archive, and a branch that has other blocks in their
// place, for each other's blocks: what one knows is not the other's.
func TestFindInBranches(t *testing.T) {
	ours, theirs := newGrower(t, 501), newGrower(t, 502)
	for range 5 {
		ours.block()
		theirs.block()
	}
	a := grown(t, ours)
	branch := a.Over(grown(t, theirs).Rows(), 0)
	for range 2 { // the second time everything is known
		for number := range uint64(5) {
			check := func(name string, h *History, has, not *grower) {
				t.Helper()
				if found, err := h.FindBlock(t.Context(), has.blocks[number].Block.Hash()); err != nil || found != number {
					t.Errorf("%s: its block %d is found as %d, %v", name, number, found, err)
				}
				if _, err := h.FindBlock(t.Context(), not.blocks[number].Block.Hash()); number > 0 && !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: the other's block %d: %v, want ErrNotFound", name, number, err)
				}
			}
			check("archive", &a.History, ours, theirs)
			if number > 0 {
				check("branch", branch, theirs, ours)
			}
		}
	}
}
