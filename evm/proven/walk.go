package proven

import (
	"errors"
	"fmt"

	"ashlar/evm"
	"ashlar/evm/merkle"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// missingNode means that a trie node on the way to a key is not known.
type missingNode struct{ hash common.Hash }

func (e *missingNode) Error() string { return fmt.Sprintf("trie node %x is missing", e.hash) }

func isMissing(err error) bool {
	var missing *missingNode
	return errors.As(err, &missing)
}

// known returns the trie node with a hash. Whoever puts a node there has hashed it.
type known func(hash common.Hash) ([]byte, bool)

// walk returns the value of a key in the trie with a root, nil if the trie does not have it.
func walk(nodes known, root, key common.Hash) (value []byte, err error) {
	if root == types.EmptyRootHash {
		return nil, nil
	}
	var path [evm.KeyNibbles]byte
	evm.AppendNibbles(path[:0], key[:])
	for depth := 0; ; {
		blob, ok := nodes(root)
		if !ok {
			return nil, &missingNode{root}
		}
		found, err := merkle.Descend(blob, path[:], depth)
		if err != nil {
			return nil, fmt.Errorf("trie node %x: %w", root, err)
		}
		if found.Hash == nil {
			return found.Value, nil
		}
		root, depth = common.BytesToHash(found.Hash), found.Depth
	}
}

// account returns an account of the state with a root, nil if there is none.
func account(nodes known, root, key common.Hash) (*types.StateAccount, error) {
	value, err := walk(nodes, root, key)
	if err != nil || value == nil {
		return nil, err
	}
	found := new(types.StateAccount)
	if err := rlp.DecodeBytes(value, found); err != nil {
		return nil, fmt.Errorf("account %x: %w", key, err)
	}
	if n := len(found.CodeHash); n != common.HashLength {
		return nil, fmt.Errorf("account %x: its code hash has %d bytes (want %d)", key, n, common.HashLength)
	}
	return found, nil
}

// word returns a slot of the storage with a root, zero if it was never set.
func word(nodes known, root, key common.Hash) (common.Hash, error) {
	value, err := walk(nodes, root, key)
	if err != nil || value == nil {
		return common.Hash{}, err
	}
	content, rest, err := rlp.SplitString(value)
	if err != nil || len(rest) > 0 || len(content) > common.HashLength {
		return common.Hash{}, fmt.Errorf("slot %x: %x is not a word", key, value)
	}
	return common.BytesToHash(content), nil
}
