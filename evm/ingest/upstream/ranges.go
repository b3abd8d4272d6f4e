package upstream

import (
	"context"
	"fmt"
	"io"

	"ashlar/chain"
	"ashlar/evm/ingest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

const (
	rangeBlocks = 16 // asked for at once
	rangesAhead = 4  // that are asked for in parallel, and may wait in memory
)

// ranges is the blocks of a node's chain from one to another, asked for in
// parallel and given in order. It implements [ingest.Source]. What it gives is a
// chain: each block follows the one before, whatever the node answers.
type ranges struct {
	last, end chain.Ref // the last block that was given; the one to end with
	proof     *ladder   // that binds the blocks to one that is known; nil for none
	ready     chan chan fetched
	current   []*types.Block // of the range that is being given
	cancel    context.CancelFunc
	group     *errgroup.Group
}

type fetched struct {
	blocks []*types.Block
	err    error
}

var (
	_ ingest.Source  = (*ranges)(nil)
	_ ingest.Stopper = (*ranges)(nil)
)

// ranges asks for the blocks after one up to another, whose hash may be zero
// where it is not known. With a proof nothing is given that is not bound by it. It
// must be closed.
func (p *Pursuit) ranges(ctx context.Context, from Node, after, end chain.Ref, proof *ladder) *ranges {
	ctx, cancel := context.WithCancel(ctx)
	r := &ranges{last: after, end: end, proof: proof, ready: make(chan chan fetched, rangesAhead-1), cancel: cancel}
	r.group, ctx = errgroup.WithContext(ctx)
	r.group.Go(func() error {
		defer close(r.ready)
		for first := after.Number + 1; first <= end.Number; {
			count := int(min(rangeBlocks-first%rangeBlocks, end.Number-first+1))
			answer := make(chan fetched, 1)
			select {
			case r.ready <- answer:
			case <-ctx.Done():
				return nil
			}
			begin := first
			r.group.Go(func() error {
				var got fetched
				got.err = p.within(ctx, func(ctx context.Context) (err error) {
					got.blocks, err = fetch(ctx, from, begin, count)
					return err
				})
				answer <- got
				return nil
			})
			first += uint64(count)
		}
		return nil
	})
	return r
}

// fetch asks for blocks until it has all of them.
func fetch(ctx context.Context, from Node, first uint64, count int) ([]*types.Block, error) {
	var all []*types.Block
	for len(all) < count {
		blocks, err := from.Blocks(ctx, first+uint64(len(all)), count-len(all))
		if err != nil {
			return nil, answered(err)
		}
		all = append(all, blocks...)
	}
	return all, nil
}

// Next implements [ingest.Source].
func (r *ranges) Next() (*types.Block, error) {
	if len(r.current) == 0 {
		answer, ok := <-r.ready
		if !ok {
			return nil, io.EOF
		}
		got := <-answer
		if got.err != nil {
			return nil, got.err
		}
		if err := r.prove(got.blocks); err != nil {
			return nil, err
		}
		r.current = got.blocks
	}
	block := r.current[0]
	r.current = r.current[1:]
	at := chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
	if block.ParentHash() != r.last.Hash {
		return nil, fmt.Errorf("%w: block %s has the parent %#x, block %s was before it", errMoved, at, block.ParentHash(), r.last)
	}
	if at.Number == r.end.Number && r.end.Hash != (common.Hash{}) && at != r.end {
		return nil, fmt.Errorf("%w: block %s comes where %s was told", errMoved, at, r.end)
	}
	r.last = at
	return block, nil
}

// each gives all that is left to a function, until it fails, and closes the ranges.
func (r *ranges) each(give func(*types.Block) error) error {
	defer r.close()
	for {
		block, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = give(block)
		}
		if err != nil {
			return err
		}
	}
}

// prove checks that a whole range of blocks is bound by the proof, before any of
// them is given.
func (r *ranges) prove(blocks []*types.Block) error {
	if r.proof == nil {
		return nil
	}
	hash := blocks[len(blocks)-1].Hash()
	if want := r.proof.at(blocks[len(blocks)-1].NumberU64()); hash != want {
		return fmt.Errorf("%w: block %d has the hash %#x, expected %#x", errMoved, blocks[len(blocks)-1].NumberU64(), hash, want)
	}
	for i := len(blocks) - 1; i > 0; i-- {
		if blocks[i].ParentHash() != blocks[i-1].Hash() {
			return fmt.Errorf("%w: block %d is not the parent of the next", errMoved, blocks[i-1].NumberU64())
		}
	}
	return nil
}

// Stop implements [ingest.Stopper].
func (r *ranges) Stop() { r.cancel() }

// close ends what is still asked for, and waits for that.
func (r *ranges) close() {
	r.cancel()
	_ = r.group.Wait() // the errors were in the answers
}
