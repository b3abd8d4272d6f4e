package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// maxSupply is the maximum number of blocks of one bulk import by a supplier; other
// imports wait for it.
const maxSupply = 1024

// Supplier fetches blocks named by hash from the nodes of a pursuit. It ignores the nodes'
// heads. Every block is linked by hashes to the named one before it is executed.
type Supplier struct{ *Pursuit }

// NewSupplier returns a supplier. It contacts its nodes only while Run runs.
func NewSupplier(config Config) *Supplier { return &Supplier{New(config)} }

// Run keeps the state of the nodes up to date, until ctx is done.
func (s *Supplier) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range s.nodes {
		group.Go(func() error { s.watch(ctx, c); return nil })
	}
	return group.Wait()
}

// Arrived reports that the chain has reached a named head. From then on, the transaction
// pools of the nodes are read.
func (s *Supplier) Arrived() { s.first.Do(func() { close(s.arrived) }) }

// ErrNoSupply means that no node was usable, or none had the blocks. This may change at any
// time.
var ErrNoSupply = errors.New("no node has the missing blocks")

// InvalidError means that a named block or one of its ancestors breaks a rule.
type InvalidError struct {
	Block       chain.Ref
	LatestValid common.Hash // the block's parent
	Err         error
}

func (e *InvalidError) Error() string { return e.Err.Error() }

func (e *InvalidError) Unwrap() error { return e.Err }

// Target is a block to fetch.
type Target struct {
	Hash      common.Hash
	Finalized common.Hash // a final ancestor; zero if unknown
	// Shown is called with blocks imported on the way, from one goroutine.
	Shown func(context.Context, chain.Ref) error
}

// Fetch imports a block with all of its ancestors, from the first node that has them. The
// error is an [*InvalidError] if the blocks themselves are wrong, ErrTooDeep if they fork
// off below our final block, ErrNoSupply if the nodes do not have them. Other errors are
// our own.
func (s *Supplier) Fetch(ctx context.Context, target Target) error {
	if _, err := s.follower.Find(ctx, target.Hash); !errors.Is(err, tip.ErrUnknownBlock) {
		return err // the block is already here, or our store failed
	}
	choices, _ := s.choices(time.Now())
	problem := errors.New("no upstream is usable")
	for i, c := range choices {
		err := s.supply(ctx, c.candidate, target)
		var wrong *InvalidError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			s.praise(c.candidate)
			s.setProblem("")
			return nil
		case errors.As(err, &wrong), errors.Is(err, ErrTooDeep), faultOf(err) == notTheirs:
			return err
		}
		s.blame(c.candidate, err, true)
		if i == 0 {
			problem = fmt.Errorf("%s: %w", c.name, err)
		}
	}
	s.setProblem(problem.Error())
	return fmt.Errorf("%w: %w", ErrNoSupply, problem)
}

// supply imports a block with its ancestors from one node.
func (s *Supplier) supply(ctx context.Context, from *candidate, target Target) error {
	top, err := from.node.Block(ctx, target.Hash)
	if err != nil {
		return answered(err)
	}
	number, ours := top.NumberU64(), s.follower.Forkchoice().Head
	if number <= ours.Settled().Number {
		return ErrTooDeep
	}
	s.begin(chain.Ref{Number: number, Hash: target.Hash})
	defer s.end()
	// A consensus client drives the chain, so blocks that far below the target can be
	// assumed to be final.
	due := number - min(number, s.follower.Depths().Most)
	far := due > ours.Ref().Number+bulkWorth
	l, err := s.climb(ctx, from.node, top.Header(), func(parent chain.Ref) (bool, error) {
		if parent.Hash == target.Finalized {
			due = max(due, parent.Number)
		}
		switch settled := ours.Settled(); {
		case !far && parent.Number > settled.Number:
			return s.follower.Has(ctx, parent)
		case parent.Number > settled.Number:
			return false, nil
		case parent != settled:
			return false, ErrTooDeep
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	after := l.foot
	if far {
		if after, err = s.bulk(ctx, from.node, l, due); err != nil {
			return err
		}
	}
	return s.ascend(ctx, from.node, l, after, target.Shown)
}

// bulk imports the blocks of a ladder that starts at the settled block, up to number due,
// which is final, and returns the last one.
func (s *Supplier) bulk(ctx context.Context, from Node, l *ladder, due uint64) (chain.Ref, error) {
	due -= (due + 1) % rangeBlocks // only whole ranges can be proven
	for {
		settled := s.follower.Forkchoice().Head.Settled()
		if settled.Number >= due {
			return settled, nil
		}
		end := min(due, settled.Number+maxSupply-(settled.Number+1)%rangeBlocks)
		blocks := s.ranges(ctx, from, settled, chain.Ref{Number: end, Hash: l.at(end)}, l)
		err := s.settle(ctx, blocks)
		blocks.close()
		if err != nil {
			return settled, invalidated(err, s.follower.Forkchoice().Head.Settled())
		}
	}
}

// ascend adds the blocks of a ladder that follow one block.
func (s *Supplier) ascend(ctx context.Context, from Node, l *ladder, after chain.Ref, shown func(context.Context, chain.Ref) error) error {
	return s.ranges(ctx, from, after, l.top, l).each(func(block *types.Block) error {
		if err := s.follower.Add(ctx, block); err != nil {
			return invalidated(err, after)
		}
		after = chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
		if after.Number%shownEvery == 0 && after != l.top {
			return shown(ctx, after)
		}
		return nil
	})
}

// invalidated returns the error of a block after parent as an InvalidError if the chain is
// wrong. The headers are proven, so it is, unless a body does not match its header: that is
// the node's fault.
func invalidated(err error, parent chain.Ref) error {
	var refused *execute.CheckError
	bodies := []string{execute.CheckSize, execute.CheckUnclesHash, execute.CheckTransactionsRoot, execute.CheckWithdrawalsRoot}
	if !errors.As(err, &refused) || slices.Contains(bodies, refused.Check) {
		return err
	}
	return &InvalidError{Block: chain.Ref{Number: refused.Number, Hash: refused.Hash}, LatestValid: parent.Hash, Err: err}
}
