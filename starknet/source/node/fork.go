package node

import (
	"context"
	"errors"
	"fmt"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

// retreat reverts the blocks that are not on the node's chain, whose head has the number top.
func (n *Node) retreat(ctx context.Context, top uint64, to Chain) error {
	first, head, _, err := to.Held(ctx)
	if err != nil {
		return err
	}
	s := forkSearch{n.hash, to}
	fork, err := s.run(ctx, first.Number, min(top, head.Number))
	if err != nil {
		return err
	}
	if fork == head {
		return fmt.Errorf("%w: it has block %s, and a child of another block at that height", errContradiction, head)
	}
	n.options.Logger.Info("a node's chain was reorganized", "fork", fork.Number, "hash", fork.Hash, "head", head.Number, "depth", head.Number-fork.Number)
	return to.Revert(ctx, fork)
}

// forkSearch searches for the highest block that a node and a chain have in common.
type forkSearch struct {
	hash  func(ctx context.Context, number uint64) (common.Hash, error) // of the node's block
	chain Chain
}

// run searches downwards from top in steps that double until it finds a common block, then
// bisects.
func (s *forkSearch) run(ctx context.Context, first, top uint64) (chain.Ref, error) {
	differs := top + 1 // no common block from here on
	var fork chain.Ref
	for step := uint64(1); ; step *= 2 {
		number := first
		if differs-first > step {
			number = differs - step
		}
		ref, same, err := s.compare(ctx, number)
		if err != nil {
			return fork, err
		}
		if same {
			fork = ref
			break
		}
		if number == first {
			return fork, fmt.Errorf("%w: it does not have block %s, the first block of the archive", ErrOtherChain, ref)
		}
		differs = number
	}
	for fork.Number+1 < differs {
		ref, same, err := s.compare(ctx, fork.Number+(differs-fork.Number)/2)
		if err != nil {
			return fork, err
		}
		if same {
			fork = ref
		} else {
			differs = ref.Number
		}
	}
	return fork, nil
}

// compare returns the chain's own block with a number, and whether the node has the same.
func (s *forkSearch) compare(ctx context.Context, number uint64) (ours chain.Ref, same bool, err error) {
	ours.Number = number
	if ours.Hash, err = s.chain.Hash(ctx, number); err != nil {
		return ours, false, err
	}
	var theirs common.Hash
	theirs, err = s.hash(ctx, number)
	if errors.Is(err, ErrNotFound) {
		return ours, false, nil // the node's chain has become shorter
	}
	return ours, theirs == ours.Hash, err
}
