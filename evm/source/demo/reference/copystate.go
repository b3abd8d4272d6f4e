package reference

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb"
)

// copyState makes a database with one state of another and nothing else.
func copyState(from ethdb.Database, root common.Hash) (ethdb.Database, error) {
	tries := triedb.NewDatabase(from, triedb.HashDefaults)
	defer tries.Close()
	to := rawdb.NewMemoryDatabase()
	err := copyTrie(to, tries, trie.StateTrieID(root), func(path, leaf []byte) error {
		var account types.StateAccount
		if err := rlp.DecodeBytes(leaf, &account); err != nil {
			return err
		}
		if hash := common.BytesToHash(account.CodeHash); hash != types.EmptyCodeHash {
			rawdb.WriteCode(to, hash, rawdb.ReadCode(from, hash))
		}
		if account.Root == types.EmptyRootHash {
			return nil
		}
		id := trie.StorageTrieID(root, common.BytesToHash(path), account.Root)
		return copyTrie(to, tries, id, func(_, _ []byte) error { return nil })
	})
	if err != nil {
		return nil, fmt.Errorf("reference: copying state %x: %w", root, err)
	}
	return to, nil
}

// copyTrie copies the nodes of a trie and calls leaf with each key and value.
func copyTrie(to ethdb.KeyValueWriter, tries *triedb.Database, id *trie.ID, leaf func(key, value []byte) error) error {
	from, err := trie.New(id, tries)
	if err != nil {
		return err
	}
	nodes, err := from.NodeIterator(nil)
	if err != nil {
		return err
	}
	for nodes.Next(true) {
		// A node shorter than a hash is part of its parent and has none.
		if hash := nodes.Hash(); hash != (common.Hash{}) {
			rawdb.WriteLegacyTrieNode(to, hash, nodes.NodeBlob())
		}
		if nodes.Leaf() {
			if err := leaf(nodes.LeafKey(), nodes.LeafBlob()); err != nil {
				return err
			}
		}
	}
	return nodes.Error()
}
