package ingest

import (
	"context"
	"errors"
	"testing"

	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/starknet"
	"ashlar/starknet/archive"
)

// failingWrite is a store of which one write fails.
type failingWrite struct {
	kv.Store
	left int // writes before the one that fails; negative: none is to
}

var errWrite = errors.New("the disk is full")

func (s *failingWrite) Write(ctx context.Context, b kv.Batch) error {
	if s.left--; s.left == -1 {
		return errWrite
	}
	return s.Store.Write(ctx, b)
}

// openFollower opens the network in a store.
func openFollower(t *testing.T, store kv.Store, depth uint64) *Follower {
	t.Helper()
	a, err := archive.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFollower(t.Context(), store, a, depth)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFollowingGoesOnAfterFailedWrites: after any one write has failed, such as the one by which the
// tip learns what the archive has settled, the same follower goes on from the block that it holds.
func TestFollowingGoesOnAfterFailedWrites(t *testing.T) {
	blocks := makeBlocks(7, 15)
	const depth = 5
	fork := *blocks[10]
	fork.Hash = starknet.FeltOf(1)
	failed := true
	for writes := 0; failed; writes++ {
		under, _ := open(t)
		store := &failingWrite{Store: under, left: -1}
		f := openFollower(t, store, depth)
		store.left = writes
		failures := 0
		again := func(what string, change func() error) {
			t.Helper()
			if err := change(); errors.Is(err, errWrite) {
				failures++
			} else if err != nil {
				t.Fatalf("write %d fails: %s: %v", writes, what, err)
			}
		}
		for reverted := false; ; {
			_, head, ok, err := f.Held(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			next := 0
			if ok {
				next = int(head.Number-blocks[0].Number) + 1
			}
			switch {
			case ok && head == fork.Ref():
				again("revert", func() error { return f.Revert(t.Context(), blocks[9].Ref()) })
				reverted = true
				continue
			case next == 10 && !reverted:
				again("a block of a fork", func() error { return f.Append(t.Context(), &fork) })
				continue
			case next < len(blocks)-1:
				again("a block", func() error { return f.Append(t.Context(), blocks[next]) })
				continue
			}
			break
		}
		failed = store.left < 0
		if want := map[bool]int{true: 1}[failed]; failures != want {
			t.Errorf("write %d fails: %d errors, want %d", writes, failures, want)
		}
		store.left = -1
		if err := f.Append(t.Context(), blocks[len(blocks)-1]); err != nil {
			t.Fatalf("write %d failed: the last block: %v", writes, err)
		}
		if want := blocks[len(blocks)-1-depth].Ref(); f.archive.Span().Last != want {
			t.Errorf("write %d fails: settled is %s, want %s", writes, f.archive.Span().Last, want)
		}
		for _, block := range blocks {
			if hash, err := f.Hash(t.Context(), block.Number); err != nil || hash != block.Ref().Hash {
				t.Errorf("write %d fails: block %d has the hash %x, %v, want %s", writes, block.Number, hash, err, block.Hash)
			}
		}
	}
}

// TestHighestBlockAgain: the same block is appended again after each of its writes has failed in turn, and is settled to the same
// depth as without a failure.
func TestHighestBlockAgain(t *testing.T) {
	blocks := makeBlocks(7, 10)
	const depth = 5
	writes := 0
	for failed := true; failed; writes++ {
		under, _ := open(t)
		store := &failingWrite{Store: under, left: -1}
		f := openFollower(t, store, depth)
		last := blocks[len(blocks)-1]
		for _, block := range blocks[:len(blocks)-1] {
			if err := f.Append(t.Context(), block); err != nil {
				t.Fatal(err)
			}
		}
		store.left = writes
		if err := f.Append(t.Context(), last); err != nil && !errors.Is(err, errWrite) {
			t.Fatal(err)
		}
		failed = store.left < 0
		for range 2 {
			if err := f.Append(t.Context(), last); err != nil {
				t.Errorf("write %d has failed: %v", writes, err)
			}
		}
		if want := blocks[len(blocks)-1-depth].Ref(); f.archive.Span().Last != want || f.Tip().Len() != depth || f.Tip().Forkchoice().Head.Ref() != last.Ref() {
			t.Errorf("write %d has failed: settled is %s with %d blocks above, up to %s; expected %s, %d, %s",
				writes, f.archive.Span().Last, f.Tip().Len(), f.Tip().Forkchoice().Head.Ref(), want, depth, last.Ref())
		}
	}
	if want := 4 + 1; writes != want { // the block, the head, the settled blocks, the tip without them; and none
		t.Errorf("%d runs, expected %d", writes, want)
	}
}

// TestBlocksThatCannotSettle: while blocks cannot be settled, the tip has one more than it is to hold, however many others come, also
// after a restart. They are added when blocks settle again.
func TestBlocksThatCannotSettle(t *testing.T) {
	blocks := makeBlocks(7, 20)
	const depth, added = 5, 10
	under, _ := open(t)
	store := &kvtest.Refusing{Store: under, Name: "settled"}
	f := openFollower(t, store, depth)
	appendAll := func(blocks ...*starknet.Block) {
		t.Helper()
		for _, block := range blocks {
			if err := f.Append(t.Context(), block); err != nil {
				t.Fatal(err)
			}
		}
	}
	appendAll(blocks[:added]...)
	store.Refuse.Store(true)
	for _, block := range blocks[added : added+3] {
		if err := f.Append(t.Context(), block); !errors.Is(err, kvtest.ErrRefused) {
			t.Errorf("block %d, while no blocks can be settled: %v, expected %v", block.Number, err, kvtest.ErrRefused)
		}
		if got := f.Tip().Forkchoice().Head.Ref(); got != blocks[added].Ref() || f.Tip().Len() != depth+1 {
			t.Errorf("block %d, while no blocks can be settled: the head is %s with %d blocks in the tip, expected %s, %d",
				block.Number, got, f.Tip().Len(), blocks[added].Ref(), depth+1)
		}
	}
	f = openFollower(t, store, depth)
	if err := f.Append(t.Context(), blocks[added+1]); !errors.Is(err, kvtest.ErrRefused) || f.Tip().Len() != depth+1 {
		t.Errorf("after a restart: %v with %d blocks in the tip, expected %v, %d", err, f.Tip().Len(), kvtest.ErrRefused, depth+1)
	}
	store.Refuse.Store(false)
	appendAll(blocks[added+1:]...)
	last := len(blocks) - 1
	if head := f.Tip().Forkchoice().Head; head.Ref() != blocks[last].Ref() || head.Settled() != blocks[last-depth].Ref() {
		t.Errorf("in the end the head is %s, settled is %s", head.Ref(), head.Settled())
	}
}
