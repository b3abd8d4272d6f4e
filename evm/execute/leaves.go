package execute

import (
	"context"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// TrieID names a trie of a state: the account trie (owner zero), or the storage trie of
// the account with the hash owner.
type TrieID struct{ Owner, Root common.Hash }

// EachLeaf calls found with the leaves of a trie from a key on, in ascending order, until
// it returns false or an error. The value is only valid during the call. If reads of the state
// take round trips, nodes are read side by side before the walk needs them, see [ReadAhead].
func EachLeaf(ctx context.Context, of evm.State, id TrieID, from common.Hash, found func(key common.Hash, value []byte) (more bool, err error)) error {
	if id.Root == types.EmptyRootHash || id.Root == (common.Hash{}) {
		return nil
	}
	of, end := ReadAhead(ctx, of, Contents{})
	defer end()
	if ahead, ok := of.(*readAhead); ok {
		ahead.begin(id, from)
	}
	var failed readFailure
	opened, err := trie.New(&trie.ID{StateRoot: id.Root, Owner: id.Owner, Root: id.Root}, nodeDatabase{ctx: ctx, state: of, failed: &failed})
	if err != nil {
		return fmt.Errorf("open the trie of %x: %w", id.Owner, err)
	}
	var start []byte
	if from != (common.Hash{}) {
		start = from[:] // seeking reads a node twice
	}
	nodes, err := opened.NodeIterator(start)
	if err != nil {
		return fmt.Errorf("read the trie of %x: %w", id.Owner, err)
	}
	leaves := trie.NewIterator(nodes)
	for leaves.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := found(common.BytesToHash(leaves.Key), leaves.Value)
		if err != nil || !more {
			return err
		}
	}
	if err := failed.failure(); err != nil {
		return err
	}
	return leaves.Err
}

// Touched executes a block that was executed before and returns the addresses of the accounts that it changed,
// among others that it changed back. They are in no order.
func (e *Executor) Touched(ctx context.Context, parent Parent, block *types.Block) ([]common.Address, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.calls.Release(1)
	executed, err := e.executeAgain(ctx, parent, block)
	if err != nil {
		return nil, err
	}
	touched := make([]common.Address, 0, len(executed.update.AccountsOrigin))
	for address := range executed.update.AccountsOrigin {
		touched = append(touched, address)
	}
	return touched, nil
}
