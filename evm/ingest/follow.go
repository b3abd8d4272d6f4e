package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"sync"
	"time"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/history/settling"
	"ashlar/history/tip"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Depths are the numbers of blocks below the head that stay in the tip.
type Depths struct {
	// Unfinalized applies while no finalized block is known: deeper blocks are settled,
	// and deeper reorganizations are refused.
	Unfinalized uint64
	// Most bounds the tip's memory if a chain stops finalizing. Branches other than the
	// head's are dropped if the tip would exceed about twice as many blocks. A branch is at
	// most a few blocks longer, also while blocks cannot be settled or the head stays.
	Most uint64
}

// DefaultDepths suit a chain that finalizes every few minutes, as mainnet does.
func DefaultDepths() Depths { return Depths{Unfinalized: 128, Most: 2048} }

// Due returns the last block that is too deep below a head to stay in the tip. finalized
// is zero if it is unknown.
func (d Depths) Due(head uint64, finalized chain.Ref) uint64 {
	depth := d.Most
	if finalized == (chain.Ref{}) {
		depth = min(depth, d.Unfinalized)
	}
	return head - min(head, depth)
}

// ErrFarAbove means that a block is so far above the head that it is not added before the head moves: blocks settle below the
// head only.
var ErrFarAbove = errors.New("the block is too far above the head")

const settledAtOnce = 64 // blocks that are settled in one write

// stopTime is for how long a write may still take when the follower or an import is stopped.
const stopTime = 5 * time.Second

// unsettled returns how many blocks the tip holds at most: another branch as deep as the
// head's, and a few blocks on top.
func (d Depths) unsettled() int { return int(2*min(d.Most, math.MaxInt32) + 64) }

// Follower adds blocks that arrive one by one, on any branch, to a tip, and settles them
// from there. A block is not visible before all of its checks have passed. A follower is
// the only writer of its archive and tip. Its methods are safe for concurrent use; they
// run one at a time.
type Follower struct {
	archive  *archive.Archive
	tip      *tip.Tip
	executor *execute.Executor
	depths   Depths

	// Task, if set before Run, keeps Run going after errors.
	Task *retry.Task

	writing sync.Mutex // held while the tip or the archive changes
	bad     badBlocks
}

// NewFollower makes the follower of a chain whose archive has the genesis.
func NewFollower(a *archive.Archive, t *tip.Tip, e *execute.Executor, depths Depths) *Follower {
	return &Follower{archive: a, tip: t, executor: e, depths: depths}
}

// Forkchoice returns the head, safe and finalized blocks.
func (f *Follower) Forkchoice() tip.Forkchoice { return f.tip.Forkchoice() }

// Branch is the branch that ends with a block of the tip or with the settled one.
// Another block is [tip.ErrUnknownBlock].
func (f *Follower) Branch(hash common.Hash) (*tip.Branch, error) { return f.tip.Branch(hash) }

// On says whether a block is on a branch, or settled below it.
func (f *Follower) On(ctx context.Context, branch *tip.Branch, ref chain.Ref) (bool, error) {
	if ref.Number >= branch.Settled().Number {
		at, ok := branch.At(ref.Number)
		return ok && at == ref, nil
	}
	header, err := f.archive.Header(ctx, ref.Number)
	return err == nil && header.Hash == ref.Hash, err
}

// Has says whether a block is settled or in the tip.
func (f *Follower) Has(ctx context.Context, ref chain.Ref) (bool, error) {
	if f.tip.Has(ref.Hash) {
		return true, nil
	}
	settled, _ := f.archive.Settled()
	if ref.Number > settled.Number {
		return false, nil
	}
	header, err := f.archive.Header(ctx, ref.Number)
	return err == nil && header.Hash == ref.Hash, err
}

// Find returns the header of a block that is settled or in the tip, on any branch. For
// another block it returns [tip.ErrUnknownBlock].
func (f *Follower) Find(ctx context.Context, hash common.Hash) (*types.Header, error) {
	history, number, err := f.Locate(ctx, hash)
	if err != nil {
		return nil, err
	}
	header, err := history.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	return header.Header, nil
}

// Locate returns the number of a block that is settled or in the tip, on any branch, and
// a history with that block. For another block it returns [tip.ErrUnknownBlock].
func (f *Follower) Locate(ctx context.Context, hash common.Hash) (*archive.History, uint64, error) {
	branch, err := f.tip.Branch(hash)
	if err == nil {
		return f.over(branch), branch.Ref().Number, nil
	}
	if !errors.Is(err, tip.ErrUnknownBlock) {
		return nil, 0, err
	}
	number, err := f.archive.FindBlock(ctx, hash)
	if errors.Is(err, archive.ErrNotFound) {
		err = fmt.Errorf("%w: %#x", tip.ErrUnknownBlock, hash)
	}
	return &f.archive.History, number, err
}

// Head returns the history up to the head, and the head's number.
func (f *Follower) Head() (*archive.History, uint64) {
	head := f.tip.Forkchoice().Head
	return f.over(head), head.Ref().Number
}

// over is the history up to the end of a branch.
func (f *Follower) over(branch *tip.Branch) *archive.History {
	return f.archive.Over(branch.Over(f.archive.Rows()), branch.Settled().Number)
}

// Add executes a block on its parent, makes all checks and adds it to the tip, durably.
// The head stays where it is. The errors are
//   - a [*execute.CheckError] for an invalid block,
//   - [tip.ErrUnknownParent] if the parent is neither in the tip nor the last settled block,
//   - [execute.ErrFuture] or [execute.ErrUnknownFork] for a block that cannot be judged yet,
//   - why blocks cannot be settled, if the tip has as many as it is to hold,
//   - [ErrFarAbove] if it has as many, and none is to be settled before the head moves.
func (f *Follower) Add(ctx context.Context, block *types.Block) (err error) {
	defer func() { f.bad.record(err) }()
	if err := f.executor.VerifyBodyInParallel(block); err != nil {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.agree(ctx); err != nil {
		return err
	}
	if f.tip.Has(block.Hash()) {
		return nil
	}
	if err := f.settleBefore(ctx, block.ParentHash(), block.NumberU64()); err != nil {
		return err
	}
	parent, history, err := f.parent(ctx, block.ParentHash())
	if errors.Is(err, tip.ErrUnknownBlock) {
		return fmt.Errorf("%w: block %d (%#x) has the parent %#x", tip.ErrUnknownParent, block.NumberU64(), block.Hash(), block.ParentHash())
	}
	if err != nil {
		return err
	}
	delta, err := f.executor.Process(ctx, parent, block)
	if err != nil {
		return err
	}
	return f.add(ctx, parent, history, delta)
}

// parent returns the parent with a hash, on which a block can be executed, and the
// history up to it.
func (f *Follower) parent(ctx context.Context, hash common.Hash) (execute.Parent, *archive.History, error) {
	branch, err := f.tip.Branch(hash)
	if err != nil {
		return execute.Parent{}, nil, err
	}
	history := f.over(branch)
	number := branch.Ref().Number
	header, err := history.Header(ctx, number)
	if err != nil {
		return execute.Parent{}, nil, err
	}
	return execute.Parent{
		Header: header.Header, State: history.StateAt(number),
		Ancestors: archive.Ancestors{History: history}, TotalDifficulty: header.TotalDifficulty,
	}, history, nil
}

// add adds a block that was executed on the last block of a history to the tip.
func (f *Follower) add(ctx context.Context, parent execute.Parent, history *archive.History, delta *evm.Delta) error {
	rows := new(tip.Rows)
	totalDifficulty := new(big.Int).Add(parent.TotalDifficulty, delta.Block.Difficulty())
	if err := history.Encode(ctx, rows, delta, totalDifficulty); err != nil {
		return err
	}
	if err := settling.Prune(ctx, f.tip, f.depths.unsettled(), delta.Block.ParentHash()); err != nil {
		return err
	}
	return f.tip.Add(ctx, delta.Ref(), delta.Block.ParentHash(), rows)
}

// SetHead makes a block of the tip, or the settled one, the head, and says which
// blocks are safe and finalized; zero leaves either as it is. Another block is
// [tip.ErrUnknownBlock].
func (f *Follower) SetHead(ctx context.Context, head common.Hash, safe, finalized chain.Ref) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.completeBefore(ctx, head); err != nil {
		return err
	}
	return f.tip.SetHead(ctx, head, safe, finalized)
}

// Import brings in blocks in bulk, for a chain that is far behind: they settle as
// they come, many times as fast as through [Follower.Add]. The source may begin with
// blocks that are settled already. Import ends as [Importer.Import] does. The tip then
// drops all blocks that do not descend from the last imported one. settled is called
// whenever blocks have settled.
func (f *Follower) Import(ctx context.Context, source Source, settled func()) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.complete(ctx); err != nil {
		return err
	}
	importer, err := New(ctx, f.archive, f.executor, f.archive.Genesis())
	if err != nil {
		return err
	}
	importer.settled = func(ctx context.Context, last chain.Ref) error {
		if err := f.tip.Overtaken(ctx, last); err != nil {
			return err
		}
		settled()
		return nil
	}
	err = importer.Import(ctx, source)
	f.bad.record(err)
	return err
}

// Depths are those that the follower was made with.
func (f *Follower) Depths() Depths { return f.depths }

// Run settles blocks as they become final or deep enough, until ctx is done.
func (f *Follower) Run(ctx context.Context) error { return f.Task.Keep(ctx, f.settleAll) }

func (f *Follower) settleAll(ctx context.Context) error {
	return f.tip.EachMove(ctx, func(ctx context.Context) error {
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = f.settle(ctx); err != nil {
				return err
			}
		}
		f.Task.Succeeded()
		return nil
	})
}

// agree has the tip know of blocks that the archive has settled, in case the write that
// would have recorded it failed. writing is held.
func (f *Follower) agree(ctx context.Context) error {
	settled, _ := f.archive.Settled()
	if f.tip.Forkchoice().Head.Settled() == settled {
		return nil
	}
	return f.tip.Overtaken(ctx, settled)
}

// complete completes an append that failed, and has the tip know of it. writing is held.
func (f *Follower) complete(ctx context.Context) error {
	if err := f.archive.Complete(ctx); err != nil {
		return err
	}
	return f.agree(ctx)
}

// completeBefore is complete before a block becomes the head, if it does not descend from those
// whose append failed. Otherwise they stay due, and a store that does not take them does not hold
// up the head. writing is held.
func (f *Follower) completeBefore(ctx context.Context, head common.Hash) error {
	if doubtful, ok := f.archive.Doubtful(); ok {
		branch, err := f.tip.Branch(head)
		if err != nil {
			return err
		}
		if at, ok := branch.At(doubtful.Number); !ok || at != doubtful {
			return f.complete(ctx)
		}
	}
	return f.agree(ctx)
}

// settleBefore makes room for a block that is about to be added far above the settled one. Run should have settled blocks by then,
// but it fails, or is too slow, or nothing is due because the head is far below. The error keeps the tip from growing until
// blocks settle again. A block whose parent is unknown, or has another number, is left to the checks of blocks. writing is held.
func (f *Follower) settleBefore(ctx context.Context, parent common.Hash, number uint64) error {
	most := f.depths.Most + settledAtOnce
	above := func() uint64 { return number - min(number, f.tip.Forkchoice().Head.Settled().Number+1) }
	if above() < most {
		return nil
	}
	if branch, err := f.tip.Branch(parent); err != nil || branch.Ref().Number+1 != number {
		return nil
	}
	for more := true; more && above() >= most; {
		var err error
		if more, err = f.settleSome(ctx); err != nil {
			return fmt.Errorf("%d blocks are not settled, expected fewer than %d: %w", above(), most, err)
		}
	}
	if above() >= most && f.tip.Has(parent) {
		return fmt.Errorf("%w: block %d is after %d blocks that are not settled, expected fewer than %d; the head is block %s",
			ErrFarAbove, number, above(), most, f.tip.Forkchoice().Head.Ref())
	}
	return nil
}

// settle is settleSome for a caller that does not hold writing.
func (f *Follower) settle(ctx context.Context) (more bool, err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.settleSome(ctx)
}

// settleSome settles what is due, but not too much at once, and says whether there is more. writing is held.
func (f *Follower) settleSome(ctx context.Context) (more bool, err error) {
	// A write that has begun is completed: the tip must know what the archive was given. If the
	// store does not answer, the next start finds out.
	ctx, cancel := retry.Outlast(ctx, stopTime)
	defer cancel()
	if err := f.complete(ctx); err != nil {
		return false, err
	}
	blocks := f.tip.Unsettled(f.due())
	if more = len(blocks) > settledAtOnce; more {
		blocks = blocks[:settledAtOnce]
	}
	if len(blocks) == 0 {
		return false, nil
	}
	encoded := make([]archive.Encoded, len(blocks))
	for i, block := range blocks {
		encoded[i] = block
	}
	if err := f.archive.AppendEncoded(ctx, encoded...); err != nil {
		return false, err
	}
	return more, f.tip.Settled(ctx, blocks[len(blocks)-1].Ref())
}

// due is the number of the last block that is to be settled now.
func (f *Follower) due() uint64 {
	forkchoice := f.tip.Forkchoice()
	finalized := forkchoice.Finalized
	due := f.depths.Due(forkchoice.Head.Ref().Number, finalized)
	if at, ok := forkchoice.Head.At(finalized.Number); ok && at == finalized {
		due = max(due, at.Number)
	}
	return due
}
