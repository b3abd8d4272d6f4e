package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/history/tip"
	"ashlar/internal/await"
	"ashlar/kv"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// followed is a target whose blocks come through a tip.
type followed struct {
	*target
	tip      *tip.Tip
	follower *ingest.Follower
	depths   ingest.Depths
}

func newFollowed(t *testing.T, depths ingest.Depths) *followed {
	f := &followed{target: newTarget(t), depths: depths}
	f.restart()
	return f
}

// restart forgets what is in memory.
func (f *followed) restart() {
	f.t.Helper()
	f.reopen()
	f.openOver(f.store)
}

// openOver opens what is in a store.
func (f *followed) openOver(store kv.Store) {
	f.t.Helper()
	var err error
	if f.archive, err = archive.Open(f.t.Context(), store); err != nil {
		f.t.Fatal(err)
	}
	settled, _ := f.archive.Settled()
	if f.tip, err = tip.Open(f.t.Context(), store, archive.Tables(), settled); err != nil {
		f.t.Fatal(err)
	}
	executor, err := execute.New(f.genesis.Config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.follower = ingest.NewFollower(f.archive, f.tip, executor, f.depths)
}

// follow adds blocks and makes each the head.
func (f *followed) follow(blocks ...*types.Block) {
	f.t.Helper()
	for _, block := range blocks {
		if err := f.follower.Add(f.t.Context(), block); err != nil {
			f.t.Fatal(err)
		}
		if err := f.follower.SetHead(f.t.Context(), block.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// settle runs the follower until it has settled a block.
func (f *followed) settle(number uint64) {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.follower.Run(ctx) }()
	await.Until(f.t, fmt.Sprintf("block %d to settle", number), func() bool {
		select {
		case err := <-done:
			f.t.Fatalf("the follower ended: %v", err)
		default:
		}
		at, _ := f.archive.Settled()
		return at.Number >= number && f.tip.Forkchoice().Head.Settled() == at
	})
	stop()
	if err := <-done; err != nil {
		f.t.Fatal(err)
	}
}

func ref(block *types.Block) chain.Ref {
	return chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
}

// A chain that was followed, with restarts, is row by row the one that was imported.
func TestFollowedIsAsImported(t *testing.T) {
	blocks := ingesttest.Chain(t)
	imported := newTarget(t)
	imported.mustImport(blocks)

	f := newFollowed(t, ingest.Depths{Unfinalized: 6, Most: 100})
	for i, block := range blocks {
		f.follow(block)
		if i%9 == 8 {
			f.settle(uint64(i) + 1 - 6)
		}
		if i%7 == 6 {
			f.restart()
			if got := f.tip.Forkchoice().Head.Ref(); got != ref(block) {
				t.Fatalf("after a restart the head is %s, it was %s", got, ref(block))
			}
		}
	}
	last := blocks[len(blocks)-1]
	if err := f.follower.SetHead(t.Context(), last.Hash(), chain.Ref{}, ref(last)); err != nil {
		t.Fatal(err)
	}
	f.settle(last.NumberU64())
	if !maps.Equal(f.rows(), imported.rows()) {
		t.Error("the followed chain has other rows than the imported one")
	}
}

// stopper is a store that has somebody stopped after one of its writes.
type stopper struct {
	kv.Store
	stop context.CancelFunc
	left int // writes until then
}

func (s *stopper) Write(ctx context.Context, b kv.Batch) error {
	err := s.Store.Write(ctx, b)
	if s.left--; s.left == 0 {
		s.stop()
	}
	return err
}

// A follower that is stopped while it settles can be run again.
func TestStoppedWhileSettling(t *testing.T) {
	for after := 1; after <= 3; after++ {
		f := newFollowed(t, ingest.Depths{Unfinalized: 4, Most: 100})
		ctx, stop := context.WithCancel(t.Context())
		store := &stopper{Store: f.store, stop: stop}
		f.openOver(store)
		blocks := ingesttest.Chain(t)
		f.follow(blocks[:10]...)
		store.left = after
		ended := make(chan error, 1)
		go func() { ended <- f.follower.Run(ctx) }()
		await.Until(t, "the follower to be stopped or to have settled", func() bool {
			at, _ := f.archive.Settled()
			return at.Number >= 6 || ctx.Err() != nil
		})
		stop()
		if err := <-ended; err != nil {
			t.Errorf("stopped after write %d: %v", after, err)
		}
		f.follow(blocks[10:14]...)
		f.settle(10)
	}
}

func TestFollowerRefuses(t *testing.T) {
	blocks := ingesttest.Chain(t)
	f := newFollowed(t, ingest.DefaultDepths())
	f.follow(blocks[:3]...)
	head := f.tip.Forkchoice().Head.Ref()

	bad := blocks[3].Header()
	bad.Root[5]++
	var refused *execute.CheckError
	if err := f.follower.Add(t.Context(), types.NewBlockWithHeader(bad).WithBody(*blocks[3].Body())); !errors.As(err, &refused) || refused.Check != execute.CheckStateRoot {
		t.Errorf("a block with a wrong state root: %v", err)
	}
	if err := f.follower.Add(t.Context(), blocks[5]); !errors.Is(err, tip.ErrUnknownParent) {
		t.Errorf("a block without its parent: %v", err)
	}
	if err := f.follower.SetHead(t.Context(), blocks[4].Hash(), chain.Ref{}, chain.Ref{}); !errors.Is(err, tip.ErrUnknownBlock) {
		t.Errorf("a head that is not there: %v", err)
	}
	if f.tip.Has(bad.Hash()) || f.tip.Forkchoice().Head.Ref() != head {
		t.Error("what was refused has left a trace")
	}
	f.follow(blocks[3:]...) // and nothing stands in the way of the right ones
}

// build makes a block on the head that differs from others by its time.
func (f *followed) build(later uint64) *types.Block {
	f.t.Helper()
	block, _, err := f.follower.Build(f.t.Context(), func(parent *types.Header, _ *big.Int) (execute.Attributes, types.Transactions, error) {
		return execute.Attributes{Timestamp: parent.Time + later, GasLimit: parent.GasLimit, FeeRecipient: common.Address{byte(later)}}, nil, nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return block
}

// TestReorganization moves the head between two branches, and settles one of them.
func TestReorganization(t *testing.T) {
	f := newFollowed(t, ingest.Depths{Unfinalized: 50, Most: 100})
	fork := f.build(1)
	var left, right []*types.Block
	for range 5 {
		left = append(left, f.build(2))
	}
	f.setHead(fork)
	for range 4 {
		right = append(right, f.build(3))
	}
	f.setHead(left[4])
	f.logs("depth=5", right[3], left[4])
	f.logs("depth=2", left[2], left[4]) // back to an earlier block
	f.logs("", left[4], left[2])
	f.logs("depth=4", left[4], right[3])
	if err := f.follower.SetHead(t.Context(), right[3].Hash(), chain.Ref{}, ref(right[1])); err != nil {
		t.Fatal(err)
	}
	f.settle(right[1].NumberU64())
	if f.tip.Has(left[4].Hash()) || !f.tip.Has(right[2].Hash()) {
		t.Error("settling one branch must let go of the other, and of it alone")
	}
	if err := f.follower.SetHead(t.Context(), left[4].Hash(), chain.Ref{}, chain.Ref{}); !errors.Is(err, tip.ErrUnknownBlock) {
		t.Errorf("a reorganization below what is settled: %v", err)
	}
	if has, err := f.follower.Has(t.Context(), ref(fork)); !has || err != nil {
		t.Errorf("a settled block is not known: %v", err)
	}
	if has, err := f.follower.Has(t.Context(), ref(left[0])); has || err != nil {
		t.Errorf("a block of the branch that lost is known: %v", err)
	}
}

// logs fails the test if the move to a block from another is logged otherwise; want is empty if it
// is no reorganization.
func (f *followed) logs(want string, to, from *types.Block) {
	f.t.Helper()
	branch, err := f.follower.Branch(to.Hash())
	if err != nil {
		f.t.Fatal(err)
	}
	left, err := f.follower.Branch(from.Hash())
	if err != nil {
		f.t.Fatal(err)
	}
	var out strings.Builder
	f.follower.LogReorganization(f.t.Context(), slog.New(slog.NewTextHandler(&out, nil)), branch, left.Refs())
	if got := out.String(); (got == "") != (want == "") || !strings.Contains(got, want) {
		f.t.Errorf("logged %q, expected %q", got, want)
	}
}

func (f *followed) setHead(block *types.Block) {
	f.t.Helper()
	if err := f.follower.SetHead(f.t.Context(), block.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
		f.t.Fatal(err)
	}
}

// refusing is a store that refuses some of its writes, as one on a full disk does: before
// they are done, or after.
type refusing struct {
	kv.Store
	writes atomic.Int64
}

func (r *refusing) Write(ctx context.Context, b kv.Batch) error {
	n := r.writes.Add(1)
	if n%3 == 1 {
		return kv.ErrFull
	}
	if err := r.Store.Write(ctx, b); err != nil || n%3 == 2 {
		return errors.Join(err, kv.ErrFull)
	}
	return nil
}

// A chain that was followed while its store refused most writes is row by row the one that
// was imported.
func TestFollowedWhileWritesAreRefused(t *testing.T) {
	blocks := ingesttest.Chain(t)
	imported := newTarget(t)
	imported.mustImport(blocks)

	f := newFollowed(t, ingest.Depths{Unfinalized: 4, Most: 100})
	store := &refusing{Store: f.store}
	f.openOver(store)
	f.follower.Task = retry.New("settle blocks", slog.New(slog.DiscardHandler))
	insist := func(do func() error) {
		t.Helper()
		for {
			if err := do(); err == nil {
				return
			} else if !errors.Is(err, kv.ErrFull) {
				t.Fatal(err)
			}
		}
	}
	for _, block := range blocks {
		insist(func() error { return f.follower.Add(t.Context(), block) })
		insist(func() error { return f.follower.SetHead(t.Context(), block.Hash(), chain.Ref{}, chain.Ref{}) })
	}
	last := blocks[len(blocks)-1]
	insist(func() error { return f.follower.SetHead(t.Context(), last.Hash(), chain.Ref{}, ref(last)) })
	f.settle(last.NumberU64())
	f.restart()
	if !maps.Equal(f.rows(), imported.rows()) {
		t.Error("the followed chain has other rows than the imported one")
	}
}
