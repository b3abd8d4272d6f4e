package node

import (
	"context"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/retry"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// Chain stores the blocks of a node that is followed. Its methods are called by one goroutine
// at a time. Any error ends Follow.
type Chain interface {
	// Held returns the lowest and highest block; ok is false if there is none.
	Held(ctx context.Context) (first, head chain.Ref, ok bool, err error)
	// Hash returns the hash of the block with a number between these.
	Hash(ctx context.Context, number uint64) (common.Hash, error)
	// Append adds the child of the highest block, or the very first block.
	Append(ctx context.Context, block *starknet.Block) error
	// Revert removes all blocks above an ancestor of the highest, because of a reorganization.
	Revert(ctx context.Context, ancestor chain.Ref) error
}

// errForked means that the node's next block is not a child of our head.
var errForked = errors.New("the next block has another parent")

// errContradiction means that two responses of the node contradict each other. Its chain may
// have changed in between, or there may be several nodes behind the URL.
var errContradiction = errors.New("the node's responses contradict each other")

// Follow copies the node's chain to another until ctx is done or an error occurs that a retry
// would not fix. An empty chain begins with the block number first.
//
// Missing blocks are fetched in parallel and appended in order. If a block is not the child of
// its predecessor, or the node has a different head, Follow searches for the highest common
// block and reverts the blocks above. All goroutines have ended when Follow returns.
func (n *Node) Follow(ctx context.Context, first uint64, to Chain) error {
	defer n.options.HTTP.CloseIdleConnections()
	if err := n.checkChainID(ctx); err != nil {
		return err
	}
	pause := n.newPause()
	for {
		moved, err := n.approach(ctx, first, to)
		switch {
		case errors.Is(err, errContradiction) || errors.Is(err, ErrNotFound):
			// Both can happen briefly while the node's chain changes.
			n.record.failed(err, errors.Is(err, errContradiction))
			n.options.Logger.Warn("following a node failed: trying again from its head", "failures", pause.failures+1, "error", err)
			err = pause.wait(ctx, 0)
		case err != nil:
		case moved: // there may be more blocks already
			pause.reset()
		default:
			pause.reset()
			err = retry.Sleep(ctx, n.options.Poll)
		}
		if err != nil {
			return err
		}
	}
}

// checkChainID checks that the node is on the expected chain.
func (n *Node) checkChainID(ctx context.Context) error { return n.checkChain(ctx, n.ChainID) }

// checkChain is checkChainID with a function that fetches the ID.
func (n *Node) checkChain(ctx context.Context, fetch func(context.Context) (starknet.Felt, error)) error {
	want := n.options.ChainID
	if want.IsZero() {
		return nil
	}
	id, err := fetch(ctx)
	if err == nil && id != want {
		err = fmt.Errorf("%w: its chain ID is %s, expected %s", ErrOtherChain, id, want)
	}
	return err
}

// approach moves the chain forward to the node's head, or back to a common block. It returns
// whether the chain moved.
func (n *Node) approach(ctx context.Context, first uint64, to Chain) (moved bool, err error) {
	target, err := n.Head(ctx)
	if errors.Is(err, ErrNotFound) {
		return false, nil // the node has no blocks yet
	}
	if err != nil {
		return false, err
	}
	lowest, head, ok, err := to.Held(ctx)
	if err != nil {
		return false, err
	}
	next, last := first, (*chain.Ref)(nil)
	if ok {
		next, last = head.Number+1, &head
	}
	if target.Number >= next {
		err = n.advance(ctx, next, target.Number, to, last)
		if errors.Is(err, errForked) {
			err = n.retreat(ctx, target.Number, to)
		}
		return true, err
	}
	if !ok || target.Number < lowest.Number {
		return false, nil // the node is still below the first block
	}
	hash, err := to.Hash(ctx, target.Number)
	if err != nil || hash == target.Hash {
		return false, err // the node has our head, or is behind on the same chain
	}
	return true, n.retreat(ctx, target.Number, to)
}

// advance appends the blocks with the numbers from to until. The first is the child of head,
// or the very first block if head is nil. At most Parallel blocks are in memory.
func (n *Node) advance(ctx context.Context, from, until uint64, to Chain, head *chain.Ref) error {
	if until-from >= uint64(n.options.Parallel) {
		n.options.Logger.Info("catching up with a node", "from", from, "to", until)
	}
	group, inner := errgroup.WithContext(ctx) // Append uses ctx: a failed request must not interrupt it
	// The blocks in the queue and the one being awaited add up to Parallel.
	queue := make(chan chan *starknet.Block, n.options.Parallel-1)
	group.Go(func() error {
		defer close(queue)
		for number := from; number <= until; number++ {
			answer := make(chan *starknet.Block, 1)
			select {
			case queue <- answer:
			case <-inner.Done():
				return inner.Err()
			}
			group.Go(func() error {
				block, err := n.Block(inner, number)
				if err == nil {
					answer <- block
				}
				return err
			})
		}
		return nil
	})
	group.Go(func() error {
		for answer := range queue {
			select {
			case block := <-answer:
				if head != nil && common.Hash(block.Parent) != head.Hash {
					return errForked
				}
				if err := to.Append(ctx, block); err != nil {
					return err
				}
				ref := block.Ref()
				head = &ref
			case <-inner.Done():
				return inner.Err()
			}
		}
		return nil
	})
	return group.Wait()
}
