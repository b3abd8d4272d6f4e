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

// supplyMost is how many blocks are imported at once by a supplier: whoever brings in
// others waits for that.
const supplyMost = 1024

// Supplier has the nodes of a pursuit bring in blocks that somebody else names by
// their hash. What the nodes say of their heads moves nothing. Every block that they
// give is bound by hashes to the one that is named, before it is looked at.
type Supplier struct{ *Pursuit }

// NewSupplier makes a supplier. Its nodes are not asked before it is run.
func NewSupplier(config Config) *Supplier { return &Supplier{New(config)} }

// Run keeps what is known of the nodes up to date, until ctx is done.
func (s *Supplier) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range s.nodes {
		group.Go(func() error { s.watch(ctx, c); return nil })
	}
	return group.Wait()
}

// Arrived says that the chain has come to a head that was named, so that what waits
// at the nodes can be of use.
func (s *Supplier) Arrived() { s.first.Do(func() { close(s.arrived) }) }

// ErrNoSupply says that no node could be asked for blocks, or none had them. That may
// be otherwise a moment later.
var ErrNoSupply = errors.New("no node has the missing blocks")

// InvalidError says that a block which leads to a named one breaks a rule.
type InvalidError struct {
	Block       chain.Ref
	LatestValid common.Hash // its parent
	Err         error
}

func (e *InvalidError) Error() string { return e.Err.Error() }

func (e *InvalidError) Unwrap() error { return e.Err }

// Target is a block to be brought in.
type Target struct {
	Hash      common.Hash
	Finalized common.Hash // one of its ancestors that is final; zero for none
	// Shown is called with blocks on the way, from one goroutine.
	Shown func(context.Context, chain.Ref) error
}

// Fetch brings in a block with all of its ancestors, from the first node that has
// them. It fails with an [*InvalidError] where the blocks, rather than whoever gave
// them, are wrong, with ErrTooDeep where they lead elsewhere below what is final, and
// with ErrNoSupply where the nodes do not have them. Other errors are our own.
func (s *Supplier) Fetch(ctx context.Context, target Target) error {
	if _, err := s.follower.Find(ctx, target.Hash); !errors.Is(err, tip.ErrUnknownBlock) {
		return err // it has come by another way, or our own store fails
	}
	choices, _ := s.choices(time.Now())
	problem := errors.New("no upstream can be used")
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

// supply brings in a block with its ancestors from one node.
func (s *Supplier) supply(ctx context.Context, from *candidate, target Target) error {
	top, err := from.node.Block(ctx, target.Hash)
	if err != nil {
		return answered(err)
	}
	number, ours := top.NumberU64(), s.follower.Standing().Head
	if number <= ours.Settled().Number {
		return ErrTooDeep
	}
	s.begin(chain.Ref{Number: number, Hash: target.Hash})
	defer s.end()
	// What is far enough below the target is final, as far as one can tell of a chain
	// that a consensus client drives.
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

// bulk imports the blocks of a ladder that stands on the settled block, up to one
// that is final, and returns the last.
func (s *Supplier) bulk(ctx context.Context, from Node, l *ladder, due uint64) (chain.Ref, error) {
	due -= (due + 1) % rangeBlocks // ranges are proven whole
	for {
		settled := s.follower.Standing().Head.Settled()
		if settled.Number >= due {
			return settled, nil
		}
		end := min(due, settled.Number+supplyMost-(settled.Number+1)%rangeBlocks)
		blocks := s.ranges(ctx, from, settled, chain.Ref{Number: end, Hash: l.at(end)}, l)
		err := s.follower.Import(ctx, blocks)
		blocks.close()
		if err != nil {
			return settled, invalidated(err, s.follower.Standing().Head.Settled())
		}
	}
}

// ascend adds the blocks of a ladder that come after one.
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

// invalidated says of an error, met behind a block, whether it is the chain that is
// wrong. The headers are proven, so it is, but for a body that is not the one that its
// header names: that is of the node's making.
func invalidated(err error, parent chain.Ref) error {
	var refused *execute.CheckError
	bodies := []string{execute.CheckSize, execute.CheckUnclesHash, execute.CheckTransactionsRoot, execute.CheckWithdrawalsRoot}
	if !errors.As(err, &refused) || slices.Contains(bodies, refused.Check) {
		return err
	}
	return &InvalidError{Block: chain.Ref{Number: refused.Number, Hash: refused.Hash}, LatestValid: parent.Hash, Err: err}
}
