package ingest_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/big"
	"testing"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/history/tip"
	"ashlar/internal/await"
	"ashlar/kv/kvtest"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// newUnsettling returns a chain of empty blocks and a network over a store that refuses to settle them.
func newUnsettling(t *testing.T, depths ingest.Depths, count int) (blocks []*types.Block, f *followed, store *kvtest.Refusing) {
	t.Helper()
	builder := newFollowed(t, ingest.Depths{Unfinalized: 1 << 20, Most: 1 << 20})
	for range count {
		blocks = append(blocks, builder.build(1))
	}
	f = newFollowed(t, depths)
	store = &kvtest.Refusing{Store: f.store, Name: "settled"}
	store.Refuse.Store(true)
	f.store = store
	f.openOver(store)
	return blocks, f, store
}

// TestBlocksThatCannotSettle: while blocks cannot be settled, others are added until the tip has as many as it is to hold, also
// after a restart. Then they are refused with the error of settling. When blocks settle again, none is missing.
func TestBlocksThatCannotSettle(t *testing.T) {
	const depth, most = 4, 4 + ingest.SettledAtOnce
	blocks, f, store := newUnsettling(t, ingest.Depths{Unfinalized: depth, Most: depth}, 2*most)
	f.follow(blocks[:most]...)
	for range 2 {
		if err := f.follower.Add(t.Context(), blocks[most]); !errors.Is(err, kvtest.ErrRefused) {
			t.Errorf("block %d, while no blocks can be settled: %v, expected %v", most+1, err, kvtest.ErrRefused)
		}
		if got := f.tip.Len(); got != most {
			t.Fatalf("%d blocks are in the tip, expected %d", got, most)
		}
		f.setHead(blocks[most-2]) // the head may move as before
		f.setHead(blocks[most-1])
		f.openOver(store)
	}
	f.follower.Task = retry.New("settle blocks", slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- f.follower.Run(ctx) }()
	await.Until(t, "settling that is stopped", func() bool { return f.follower.Task.Stopped() != nil })
	if err := f.follower.Add(t.Context(), blocks[most]); !errors.Is(err, kvtest.ErrRefused) {
		t.Errorf("block %d, while settling is stopped: %v, expected %v", most+1, err, kvtest.ErrRefused)
	}
	store.Refuse.Store(false)
	f.follow(blocks[most:]...)
	await.Until(t, "settling that goes on", func() bool {
		settled, _ := f.archive.Settled()
		return settled == ref(blocks[len(blocks)-1-depth]) && f.follower.Task.Stopped() == nil
	})
	last := ref(blocks[len(blocks)-1])
	if err := f.follower.SetHead(t.Context(), last.Hash, chain.Ref{}, last); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the last block", func() bool { settled, _ := f.archive.Settled(); return settled == last })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	imported := newTarget(t)
	imported.mustImport(blocks)
	f.restart()
	if !maps.Equal(f.rows(), imported.rows()) {
		t.Error("the followed chain has other rows than the imported one")
	}
}

// TestBuildThatCannotSettle is TestBlocksThatCannotSettle for blocks that are built here, and a follower that settles none by itself.
func TestBuildThatCannotSettle(t *testing.T) {
	const depth, most = 4, 4 + ingest.SettledAtOnce
	_, f, store := newUnsettling(t, ingest.Depths{Unfinalized: depth, Most: depth}, 0)
	for range most {
		f.build(1)
	}
	for range 2 {
		if _, _, err := f.follower.Build(t.Context(), nil); !errors.Is(err, kvtest.ErrRefused) {
			t.Errorf("while no blocks can be settled: %v, expected %v", err, kvtest.ErrRefused)
		}
	}
	store.Refuse.Store(false)
	f.build(1)
	if got, want := f.tip.Len(), depth+1; got != want {
		t.Errorf("%d blocks are in the tip, expected %d", got, want)
	}
}

// TestWrongNumberThatCannotSettle: while blocks cannot be settled, a block with a number that is far from its parent's is judged as at
// any other time.
func TestWrongNumberThatCannotSettle(t *testing.T) {
	blocks, f, _ := newUnsettling(t, ingest.Depths{Unfinalized: 4, Most: 4}, 8)
	f.follow(blocks[:7]...)
	header := types.CopyHeader(blocks[7].Header())
	header.Number = big.NewInt(1 << 40)
	add := func() error {
		return f.follower.Add(t.Context(), types.NewBlockWithHeader(header).WithBody(*blocks[7].Body()))
	}
	if err, check := add(), (*execute.CheckError)(nil); !errors.As(err, &check) {
		t.Errorf("with a known parent: %v, expected that a check fails", err)
	}
	header.ParentHash = common.Hash{1}
	if err := add(); !errors.Is(err, tip.ErrUnknownParent) {
		t.Errorf("with an unknown parent: %v, expected %v", err, tip.ErrUnknownParent)
	}
}
