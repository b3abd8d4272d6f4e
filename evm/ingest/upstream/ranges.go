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
	rangeBlocks = 16 // per request
	rangesAhead = 4  // requested in parallel and held in memory
)

// ranges reads consecutive blocks of a node's chain; it requests them in parallel and
// returns them in order. It implements [ingest.Source]. Each returned block is a child of
// the previous one, whatever the node answers.
type ranges struct {
	last, end chain.Ref // last block returned; block to end with
	proof     *ladder   // proves the blocks; may be nil
	ready     chan chan fetched
	current   []*types.Block // rest of the current range
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

// ranges requests the blocks after one block up to end, whose hash may be zero if unknown.
// If proof is not nil, only blocks that it proves are returned. The result must be closed.
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

// fetch requests blocks until it has all of them.
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
		return nil, fmt.Errorf("%w: block %s has the parent %#x, expected %s", errMoved, at, block.ParentHash(), r.last)
	}
	if at.Number == r.end.Number && r.end.Hash != (common.Hash{}) && at != r.end {
		return nil, fmt.Errorf("%w: got block %s, expected %s", errMoved, at, r.end)
	}
	r.last = at
	return block, nil
}

// each passes all remaining blocks to give until it fails, and closes the ranges.
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

// prove checks a whole range of blocks against the proof before any of them is returned.
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

// close cancels outstanding requests and waits for them.
func (r *ranges) close() {
	r.cancel()
	_ = r.group.Wait() // errors are part of the answers
}
