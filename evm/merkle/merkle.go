// Package merkle follows keys through the encoded nodes of a Merkle Patricia trie.
package merkle

import (
	"bytes"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

// Descent is where the path to a key leaves a node: at the hash of a child, at the key's
// value, or, if neither is set, at nothing.
type Descent struct {
	Depth int // of the child
	Hash  []byte
	Value []byte
}

// Descend follows path from a depth through an encoded node and the nodes embedded in it.
func Descend(node, path []byte, depth int) (Descent, error) {
	for {
		items, rest, err := rlp.SplitList(node)
		if err != nil {
			return Descent{}, err
		}
		if len(rest) > 0 {
			return Descent{}, fmt.Errorf("%d extra bytes", len(rest))
		}
		count, err := rlp.CountValues(items)
		if err != nil {
			return Descent{}, err
		}
		var child []byte // its encoding
		leaf := false
		switch count {
		case 17:
			if depth == len(path) {
				return Descent{}, fmt.Errorf("a branch below a whole key")
			}
			child = item(items, int(path[depth]))
			depth++
		case 2:
			encoded, _, err := rlp.SplitString(items)
			if err != nil {
				return Descent{}, err
			}
			var n int
			var follows bool
			if n, leaf, follows = matchKey(encoded, path[depth:]); !follows {
				return Descent{}, nil
			}
			depth += n
			child = item(items, 1)
		default:
			return Descent{}, fmt.Errorf("it has %d items, expected 17 or 2", count)
		}
		kind, content, _, err := rlp.Split(child)
		switch {
		case err != nil:
			return Descent{}, err
		case leaf:
			return valueAt(path, depth, content)
		case kind == rlp.List: // a node of less than 32 bytes is embedded in its parent
			node = child
		case len(content) == 0:
			return Descent{}, nil
		case len(content) == common.HashLength:
			return Descent{Depth: depth, Hash: content}, nil
		default:
			return Descent{}, fmt.Errorf("a child's hash has %d bytes", len(content))
		}
	}
}

func valueAt(path []byte, depth int, value []byte) (Descent, error) {
	if depth != len(path) || len(value) == 0 {
		return Descent{}, fmt.Errorf("a leaf of %d nibbles with %d bytes", depth, len(value))
	}
	return Descent{Depth: depth, Value: value}, nil
}

// item returns the encoding of item i of a list's content, which must have more than i items.
func item(items []byte, i int) []byte {
	for {
		_, _, rest, err := rlp.Split(items)
		if err != nil {
			return nil // cannot happen: the items have been counted
		}
		if i == 0 {
			return items[:len(items)-len(rest)]
		}
		items, i = rest, i-1
	}
}

// matchKey reports whether path begins with a hex-prefix encoded part of a key, the number of
// nibbles in that part, and whether the node is a leaf.
func matchKey(encoded, path []byte) (n int, leaf, follows bool) {
	var buffer [evm.KeyNibbles]byte
	nibbles, leaf, ok := evm.AppendHexPrefix(buffer[:0], encoded)
	return len(nibbles), leaf, ok && bytes.HasPrefix(path, nibbles)
}
