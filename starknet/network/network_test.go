package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"ashlar/family"
	"ashlar/history/rows"
	"ashlar/internal/await"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/ingest"
	"ashlar/starknet/source/node"
	"ashlar/starknet/source/node/nodetest"
	"ashlar/starknet/source/synthetic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// chainOf makes the blocks of a chain.
func chainOf(seed uint64, count int) (blocks []*starknet.Block) {
	options := synthetic.Default()
	options.Seed = seed
	for made := synthetic.New(options); len(blocks) < count; {
		blocks = append(blocks, made.Next())
	}
	return blocks
}

// newStored makes the store of a network without blocks.
func newStored(t *testing.T) (kv.Store, *archive.Archive) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, "SN_MINE")
	if err != nil {
		t.Fatal(err)
	}
	return store, a
}

// TestStaysStopped: a node with another block at the height of the head is not followed again,
// so the network keeps saying since when it is not, and tries it less and less often.
func TestStaysStopped(t *testing.T) {
	store, a := newStored(t)
	blocks := chainOf(1, 10)
	if err := a.Append(t.Context(), blocks...); err != nil {
		t.Fatal(err)
	}
	other := chainOf(2, 10)
	fake := nodetest.New(t, 10, other)
	fake.ChainID = starknet.FeltOfText("SN_MINE")
	for _, quorum := range []int{1, 2} {
		entries := &Entries{Source: family.Sources{fake.URL, fake.URL}[:quorum], Quorum: quorum}
		opened, err := Family{}.Open(t.Context(), store, entries, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened.Serve(t.Context(), family.Service{Name: "mine"}); err != nil {
			t.Fatal(err)
		}
		n := opened.(*network)
		before := &stop{errors.New("it has another chain"), time.Now()}
		n.stopped.Store(before)
		fake.Set(other)
		if err := n.source.Follow(t.Context(), 0, followed{n.follower, n}); !errors.Is(err, node.ErrOtherChain) {
			t.Errorf("quorum %d: %v, want %q", quorum, err, node.ErrOtherChain)
		}
		if n.stopped.Load() != before {
			t.Errorf("quorum %d: the network says that it is followed again", quorum)
		}
		fake.Set(blocks)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- n.source.Follow(ctx, 0, followed{n.follower, n}) }()
		for end := time.Now().Add(await.Patience); n.stopped.Load() != nil && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if err := <-ended; n.stopped.Load() != nil {
			t.Errorf("quorum %d: %v, and not followed with the same head", quorum, err)
		}
	}
}

// TestStaysStoppedWithoutSettling: a network that holds its node's head, but cannot settle blocks, is stopped because of an error of
// its own until it can, also while the node has no further block.
func TestStaysStoppedWithoutSettling(t *testing.T) {
	for _, quorum := range []int{1, 2} {
		below, _ := newStored(t)
		store := &kvtest.Refusing{Store: below, Name: "settled"}
		blocks := chainOf(1, ingest.DefaultDepth+2)
		fake := nodetest.New(t, 8, blocks[:len(blocks)-1])
		fake.ChainID = starknet.FeltOfText("SN_MINE")
		entries := &Entries{Source: family.Sources{fake.URL, fake.URL + "/"}[:quorum], Quorum: quorum}
		opened, err := Family{}.Open(t.Context(), store, entries, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened.Serve(t.Context(), family.Service{Name: "mine"}); err != nil {
			t.Fatal(err)
		}
		n := opened.(*network)
		follow := func(what string, until func() bool) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- n.source.Follow(ctx, 0, followed{n.follower, n}) }()
			await.Until(t, what, until)
			cancel()
			<-ended
		}
		follow("the blocks that are not settled", func() bool {
			view := n.chain.View()
			return view != nil && view.Span().Last == blocks[ingest.DefaultDepth].Ref()
		})

		store.Refuse.Store(true)
		fake.Set(blocks)
		before := &stop{errors.New("the last attempt"), time.Now()}
		n.stopped.Store(before)
		for attempt := range 3 {
			limited, cancel := context.WithTimeout(t.Context(), await.Patience)
			err := n.source.Follow(limited, 0, followed{n.follower, n})
			cancel()
			if !errors.Is(err, kvtest.ErrRefused) || !errors.As(err, new(ownError)) {
				t.Errorf("quorum %d, attempt %d: %v, expected %v as an error of our own", quorum, attempt, err, kvtest.ErrRefused)
			}
			if n.stopped.Load() != before {
				t.Fatalf("quorum %d, attempt %d: the network says that it is followed again", quorum, attempt)
			}
		}
		store.Refuse.Store(false)
		follow("blocks that settle", func() bool { return n.stopped.Load() == nil && n.archive.Span().Last == blocks[1].Ref() })
	}
}

// TestL1AcceptedWithoutTheTag: a node that does not know the tag l1_accepted says of each block
// whether it is, which is known without a restart.
func TestL1AcceptedWithoutTheTag(t *testing.T) {
	store, _ := newStored(t)
	blocks := chainOf(1, 10)
	for _, block := range blocks[:6] {
		block.Status = starknet.AcceptedOnL1
	}
	fake := nodetest.New(t, 8, blocks)
	fake.ChainID = starknet.FeltOfText("SN_MINE")
	n := openServed(t, store, family.Sources{fake.URL}, false)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.source.Follow(ctx, 0, followed{n.follower, n}) }()
	await.Until(t, "the head", func() bool {
		view := n.chain.View()
		return view != nil && view.Span().Last == blocks[9].Ref()
	})
	cancel()
	<-ended
	if number, known := n.chain.View().L1Accepted(); !known || number != blocks[5].Number {
		t.Errorf("block %d, %t, want %d", number, known, blocks[5].Number)
	}
}

// TestErrorsOfOurOwn: an error that comes from what the node's chain is, is not one of our own.
func TestErrorsOfOurOwn(t *testing.T) {
	for _, c := range []struct {
		err  error
		ours bool
	}{
		{kv.ErrFull, true},
		{fmt.Errorf("append: %w", ingest.ErrTooDeep), false},
		{fmt.Errorf("append: %w", rows.ErrNotNext), false},
		{archive.Fits(&starknet.Block{Header: starknet.Header{Number: math.MaxUint64}}), false},
	} {
		if err := own(c.err); errors.As(err, new(ownError)) != c.ours || !errors.Is(err, c.err) {
			t.Errorf("%v: %v, expected that it is ours: %t", c.err, err, c.ours)
		}
	}
}
