package execute

import (
	"bytes"
	"context"
	"fmt"

	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Root applies what a block changed to the state trie, checks the state root
// and makes the block's delta. parent is the state after the block's parent,
// with its trie nodes. The block must not be used otherwise meanwhile.
func (e *Executor) Root(ctx context.Context, parent evm.State, parentRoot common.Hash, x *Executed) (*evm.Delta, error) {
	return e.RootKeeping(ctx, tries.New(0), parent, parentRoot, x)
}

// RootKeeping is [Executor.Root] with tries that keep nodes in memory from one block to the
// next.
func (e *Executor) RootKeeping(ctx context.Context, kept *tries.Tries, parent evm.State, parentRoot common.Hash, x *Executed) (*evm.Delta, error) {
	if err := x.root(ctx, kept, parent, parentRoot, x.Block); err != nil {
		return nil, err
	}
	return x.delta(), nil
}

// root applies the changes to the state trie and checks the state root of the block.
func (x *Executed) root(ctx context.Context, kept *tries.Tries, parent evm.State, parentRoot common.Hash, block *types.Block) error {
	if x.rooted {
		return nil
	}
	read := func(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
		return parent.Node(ctx, owner, path, hash)
	}
	kept.Begin(parentRoot, read, (&valuesBefore{update: x.update}).of)
	root, nodes, err := x.change(kept)
	if err != nil {
		return fmt.Errorf("state root of block %d: %w", block.NumberU64(), err)
	}
	if root != block.Root() {
		return mismatch(block, CheckStateRoot, block.Root(), root)
	}
	x.nodes, x.rooted = nodes, true
	return nil
}

// change applies the flat changes to the tries, returns the new state root and the nodes that
// changed, and fills in the storage roots of the accounts that changed.
func (x *Executed) change(kept *tries.Tries) (common.Hash, []evm.Node, error) {
	for address, account := range x.update.Accounts {
		if account == nil {
			continue
		}
		// Flat execution knows which accounts have no storage. Most have none and
		// need not be looked up. The roots of the others are placeholders.
		slots := x.update.Storages[address]
		if len(slots) == 0 && account.Root == types.EmptyRootHash {
			continue
		}
		var err error
		if account.Root, err = kept.StorageRoot(address); err != nil {
			return common.Hash{}, nil, err
		}
		if len(slots) == 0 {
			continue
		}
		if err = kept.SetSlots(address, account.Root, slots); err != nil {
			return common.Hash{}, nil, err
		}
	}
	return kept.Commit(x.update.Accounts)
}

// delta makes the block's delta. The state root has been checked.
func (x *Executed) delta() *evm.Delta {
	delta := &evm.Delta{
		Block:      x.Block,
		Senders:    x.Senders,
		Receipts:   x.Receipts,
		AccessList: x.AccessList,
		Traces:     x.Traces,
		Accounts:   x.update.Accounts,
		Slots:      x.update.Storages,
		Codes:      make(map[common.Hash][]byte),
	}
	x.Codes(func(hash common.Hash, code []byte) { delta.Codes[hash] = code })
	if delta.Nodes = x.nodes; x.nodes == nil && x.update.Nodes != nil {
		delta.Nodes = x.committedNodes()
	}
	return delta
}

// committedNodes returns the nodes that changed while the block was executed.
func (x *Executed) committedNodes() []evm.Node {
	nodes := 0
	for _, set := range x.update.Nodes.Sets {
		nodes += len(set.Nodes)
	}
	changed := make([]evm.Node, 0, nodes)
	for owner, set := range x.update.Nodes.Sets {
		for path, node := range set.Nodes {
			if bytes.Equal(node.Blob, set.Origins[path]) {
				continue // it has changed and changed back
			}
			changed = append(changed, evm.Node{Owner: owner, Path: path, Hash: node.Hash, Blob: node.Blob, Prev: set.Origins[path]})
		}
	}
	return changed
}
