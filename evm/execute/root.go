package execute

import (
	"bytes"
	"context"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"
)

// Root applies what a block changed to the state trie, checks the state root
// and makes the block's delta. parent is the state after the block's parent,
// with its trie nodes. The block must not be used otherwise meanwhile.
func (e *Executor) Root(ctx context.Context, parent evm.State, parentRoot common.Hash, x *Executed) (*evm.Delta, error) {
	if err := x.root(ctx, parent, parentRoot, x.Block); err != nil {
		return nil, err
	}
	return x.delta(), nil
}

// root applies the changes to the state trie and checks the state root of the block.
func (x *Executed) root(ctx context.Context, parent evm.State, parentRoot common.Hash, block *types.Block) error {
	if x.rooted {
		return nil
	}
	failed := new(readFailure)
	r := rooting{nodes: nodeDatabase{ctx: ctx, state: parent, failed: failed}, parentRoot: parentRoot, merged: trienode.NewMergedNodeSet()}
	root, err := r.apply(x.update)
	if err == nil {
		err = failed.failure()
	}
	if err != nil {
		return fmt.Errorf("state root of block %d: %w", block.NumberU64(), err)
	}
	if root != block.Root() {
		return mismatch(block, CheckStateRoot, block.Root(), root)
	}
	x.update.Nodes, x.rooted = r.merged, true
	return nil
}

// rooting applies the flat changes of one block to its parent's tries.
type rooting struct {
	nodes      nodeDatabase
	parentRoot common.Hash
	merged     *trienode.MergedNodeSet
}

// apply returns the new state root, and fills in the storage roots of the
// accounts that changed.
func (r *rooting) apply(update *state.StateUpdate) (common.Hash, error) {
	tr, err := trie.New(trie.StateTrieID(r.parentRoot), r.nodes)
	if err != nil {
		return common.Hash{}, err
	}
	var gone []common.Hash
	for address, account := range update.Accounts {
		if account == nil {
			gone = append(gone, address)
			continue
		}
		// Flat execution knows which accounts have no storage. Most have none and
		// need not be looked up. The roots of the others are placeholders.
		if slots := update.Storages[address]; len(slots) > 0 || account.Root != types.EmptyRootHash {
			before, err := storageRoot(tr, address)
			if err != nil {
				return common.Hash{}, err
			}
			if account.Root, err = r.applyStorage(address, before, slots); err != nil {
				return common.Hash{}, err
			}
		}
		value, err := rlp.EncodeToBytes(account)
		if err != nil {
			return common.Hash{}, err
		}
		if err := tr.Update(address[:], value); err != nil {
			return common.Hash{}, err
		}
	}
	// Deletions come last: one that goes before an insertion beside it could
	// collapse a node that the insertion would have kept.
	for _, address := range gone {
		if err := tr.Delete(address[:]); err != nil {
			return common.Hash{}, err
		}
	}
	return r.commit(tr)
}

// applyStorage returns the storage root of an account after changes to it.
func (r *rooting) applyStorage(owner, root common.Hash, changes map[common.Hash]common.Hash) (common.Hash, error) {
	if len(changes) == 0 {
		return root, nil
	}
	tr, err := trie.New(trie.StorageTrieID(r.parentRoot, owner, root), r.nodes)
	if err != nil {
		return common.Hash{}, err
	}
	var gone []common.Hash
	for slot, word := range changes {
		if word == (common.Hash{}) {
			gone = append(gone, slot)
			continue
		}
		value, err := rlp.EncodeToBytes(common.TrimLeftZeroes(word[:]))
		if err != nil {
			return common.Hash{}, err
		}
		if err := tr.Update(slot[:], value); err != nil {
			return common.Hash{}, err
		}
	}
	for _, slot := range gone {
		if err := tr.Delete(slot[:]); err != nil {
			return common.Hash{}, err
		}
	}
	return r.commit(tr)
}

func (r *rooting) commit(tr *trie.Trie) (common.Hash, error) {
	root, nodes := tr.Commit(false)
	if nodes == nil {
		return root, nil
	}
	return root, r.merged.Merge(nodes)
}

// storageRoot returns the storage root of an account, the empty root if there is no account.
func storageRoot(tr *trie.Trie, address common.Hash) (common.Hash, error) {
	value, err := tr.Get(address[:])
	if err != nil || value == nil {
		return types.EmptyRootHash, err
	}
	var account types.StateAccount
	if err := rlp.DecodeBytes(value, &account); err != nil {
		return common.Hash{}, fmt.Errorf("account %x in the state trie: %w", address, err)
	}
	return account.Root, nil
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
	nodes := 0
	for _, set := range x.update.Nodes.Sets {
		nodes += len(set.Nodes)
	}
	delta.Nodes = make([]evm.Node, 0, nodes)
	for owner, set := range x.update.Nodes.Sets {
		for path, node := range set.Nodes {
			if bytes.Equal(node.Blob, set.Origins[path]) {
				continue // it has changed and changed back
			}
			delta.Nodes = append(delta.Nodes, evm.Node{Owner: owner, Path: path, Hash: node.Hash, Blob: node.Blob, Prev: set.Origins[path]})
		}
	}
	return delta
}
