package execute

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"
)

// someRoot stands for the storage root of an account between the first write to its
// storage and the computation of the real root. Execution only checks whether an
// account's storage is empty.
var someRoot = common.HexToHash("0x01")

// flatTrie is the trie that StateDB gets while it executes a block whose state root is
// computed afterwards, from the flat changes. It holds nothing but the root to return.
type flatTrie struct {
	root    common.Hash
	storage bool
}

var errFlat = errors.New("execute: a trie is read during flat execution")

// UpdateStorage implements state.Trie: storage that gets a value is not empty.
func (t *flatTrie) UpdateStorage(common.Address, []byte, []byte) error {
	if t.storage && t.root == types.EmptyRootHash {
		t.root = someRoot
	}
	return nil
}

// UpdateStorageBatch implements state.Trie.
func (t *flatTrie) UpdateStorageBatch(address common.Address, keys, values [][]byte) error {
	return t.UpdateStorage(address, nil, nil)
}

// Hash implements state.Trie.
func (t *flatTrie) Hash() common.Hash { return t.root }

// Commit implements state.Trie: there are no nodes.
func (t *flatTrie) Commit(bool) (common.Hash, *trienode.NodeSet) { return t.root, nil }

// The methods below do nothing.

func (t *flatTrie) UpdateAccount(common.Address, *types.StateAccount, int) error { return nil }
func (t *flatTrie) UpdateAccountBatch([]common.Address, []*types.StateAccount, []int) error {
	return nil
}
func (t *flatTrie) DeleteAccount(common.Address) error                           { return nil }
func (t *flatTrie) DeleteStorage(common.Address, []byte) error                   { return nil }
func (t *flatTrie) UpdateContractCode(common.Address, common.Hash, []byte) error { return nil }
func (t *flatTrie) PrefetchAccount([]common.Address) error                       { return nil }
func (t *flatTrie) PrefetchStorage(common.Address, [][]byte) error               { return nil }
func (t *flatTrie) Witness() map[string][]byte                                   { return nil }
func (t *flatTrie) IsUBT() bool                                                  { return false }
func (t *flatTrie) GetKey([]byte) []byte                                         { return nil }

// The methods below are never called during execution: reads go to the state's reader.

func (t *flatTrie) GetAccount(common.Address) (*types.StateAccount, error) { return nil, errFlat }
func (t *flatTrie) GetStorage(common.Address, []byte) ([]byte, error)      { return nil, errFlat }
func (t *flatTrie) NodeIterator([]byte) (trie.NodeIterator, error)         { return nil, errFlat }
func (t *flatTrie) Prove(key []byte, proofDb ethdb.KeyValueWriter) error   { return errFlat }
