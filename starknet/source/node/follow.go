package node

import (
	"context"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// Chain is what follows a node's chain: it keeps the blocks, and knows which.
// It is called by one goroutine at a time. Its errors end the following.
type Chain interface {
	// Held names the lowest and the highest block that are held; ok is false
	// where none is.
	Held(ctx context.Context) (first, head chain.Ref, ok bool, err error)
	// Hash is that of the block with a number from the lowest to the highest.
	Hash(ctx context.Context, number uint64) (common.Hash, error)
	// Append takes the child of the highest block, or the first of all.
	Append(ctx context.Context, block *starknet.Block) error
	// Revert takes back all blocks above an ancestor of the highest, since the
	// node has others there.
	Revert(ctx context.Context, ancestor chain.Ref) error
}

// errForked says that the node's next block is no child of the head.
var errForked = errors.New("the next block has another parent")

// errContradiction says that two answers of the node do not fit together, as when
// it has changed its mind in between, or when there are several nodes behind it.
var errContradiction = errors.New("the node's answers do not fit together")

// Follow brings the node's chain to another until ctx is done, or something is
// wrong that asking again does not change. The first block of a chain that holds
// none is the one with number first.
//
// Many missing blocks are asked for in parallel, and appended in order. Each is
// the child of the one before. Where it is not, or where the head is another,
// the highest block that both have is looked for, and what lies above is taken
// back. No goroutine is left when Follow returns.
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
			// Either may be so for a moment while the node's chain changes.
			n.record.failed(err, errors.Is(err, errContradiction))
			n.options.Logger.Warn("following a node: once more from its head", "failures", pause.failures+1, "error", err)
			err = pause.wait(ctx, 0)
		case err != nil:
		case moved: // there may be more already
			pause.reset()
		default:
			pause.reset()
			err = sleep(ctx, n.options.Poll)
		}
		if err != nil {
			return err
		}
	}
}

// checkChainID makes sure that the node is of the chain that is wanted.
func (n *Node) checkChainID(ctx context.Context) error {
	want := n.options.ChainID
	if want.IsZero() {
		return nil
	}
	id, err := n.ChainID(ctx)
	if err == nil && id != want {
		err = fmt.Errorf("%w: its chain's id is %s, expected %s", ErrOtherChain, id, want)
	}
	return err
}

// approach goes to the node's head, or back from where the node is no more, and
// says whether it did either.
func (n *Node) approach(ctx context.Context, first uint64, to Chain) (moved bool, err error) {
	target, err := n.Head(ctx)
	if errors.Is(err, ErrNotFound) {
		return false, nil // the node has no block yet
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
		return false, nil // the node is not there yet
	}
	hash, err := to.Hash(ctx, target.Number)
	if err != nil || hash == target.Hash {
		return false, err // the node is where we are, or behind on the same chain
	}
	return true, n.retreat(ctx, target.Number, to)
}

// advance appends the blocks with these numbers, the first of which is the child
// of head, or the first of all where head is nil. It has no more of them at hand
// than are asked for in parallel.
func (n *Node) advance(ctx context.Context, from, until uint64, to Chain, head *chain.Ref) error {
	if until-from >= uint64(n.options.Parallel) {
		n.options.Logger.Info("catching up with a node", "from", from, "to", until)
	}
	group, inner := errgroup.WithContext(ctx) // of which Append knows nothing: an answer that fails does not end it
	// What waits in the queue, and the one that is waited for, are as many as may
	// be asked for at a time.
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
