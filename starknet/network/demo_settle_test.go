package network

import (
	"context"
	"errors"
	"testing"

	"ashlar/kv"
	"ashlar/starknet/ingest"
)

// refusing is a store that refuses writes while refuses says so.
type refusing struct {
	kv.Store
	refuses func() bool
}

var errRefused = errors.New("refused")

// Write implements [kv.Store].
func (r *refusing) Write(ctx context.Context, b kv.Batch) error {
	if r.refuses() {
		return errRefused
	}
	return r.Store.Write(ctx, b)
}

// TestDemoThatCannotSettle: while blocks cannot be settled, the demo makes no further ones. It takes no attempt for a success, so it
// stays stopped, and goes on when blocks can be settled again.
func TestDemoThatCannotSettle(t *testing.T) {
	below, a := newStored(t)
	store := &refusing{below, func() bool { return false }}
	if err := a.Append(t.Context(), chainOf(1, 1)...); err != nil {
		t.Fatal(err)
	}
	opened, err := Family{}.Open(t.Context(), store, new(Entries), false)
	if err != nil {
		t.Fatal(err)
	}
	n := opened.(*network)
	s, err := newSequencer(n)
	if err != nil {
		t.Fatal(err)
	}
	for range ingest.DefaultDepth {
		if err := s.append(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	unsettled := n.follower.Tip().Len()
	store.refuses = func() bool { return s.begun != nil && n.follower.Tip().Forkchoice().Head.Ref() == s.begun.Ref() }
	for attempt := range 6 {
		if err := s.append(t.Context()); !errors.Is(err, errRefused) {
			t.Errorf("attempt %d, while no blocks can be settled: %v, expected %v", attempt, err, errRefused)
		}
		if most := unsettled + 1; n.follower.Tip().Len() > most {
			t.Errorf("attempt %d: %d blocks are not settled, expected at most %d", attempt, n.follower.Tip().Len(), most)
		}
	}
	store.refuses = func() bool { return false }
	for range 3 {
		if err := s.append(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.follower.Tip().Len(); got != unsettled {
		t.Errorf("%d blocks are not settled, expected %d", got, unsettled)
	}
	checkContents(t, n)
}
