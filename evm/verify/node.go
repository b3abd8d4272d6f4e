package verify

import (
	"errors"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

// below is what a node says about one place below it: the hash of the node there or, if a
// leaf is embedded, the value of its key.
type below struct {
	path []byte // of the node with the hash; valid only during the call
	hash []byte

	key   common.Hash // of the leaf
	value []byte      // decoded
}

const branchItems = 17

// children calls each for everything that a branch or extension at a path refers to. It
// includes the references of embedded nodes.
func children(path, blob []byte, each func(below)) error {
	var buffer [evm.KeyNibbles]byte
	return childrenOf(buffer[:copy(buffer[:], path)], blob, false, each)
}

func childrenOf(path, blob []byte, within bool, each func(below)) error {
	items, rest, err := rlp.SplitList(blob)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes after the node", len(rest))
	}
	count, err := rlp.CountValues(items)
	switch {
	case err != nil:
		return err
	case count == branchItems:
		return branch(path, items, each)
	case count == 2:
		return short(path, items, within, each)
	}
	return fmt.Errorf("a node of %d items, expected %d or 2", count, branchItems)
}

func branch(path, items []byte, each func(below)) error {
	if len(path) == evm.KeyNibbles {
		return errors.New("a branch below a whole key")
	}
	for nibble := range byte(branchItems - 1) {
		rest, err := child(append(path, nibble), items, each)
		if err != nil {
			return err
		}
		items = rest
	}
	if value, _, err := rlp.SplitString(items); err != nil || len(value) > 0 {
		return errors.New("a branch with a value")
	}
	return nil
}

// short decodes an extension or, within another node, a leaf.
func short(path, items []byte, within bool, each func(below)) error {
	encoded, items, err := rlp.SplitString(items)
	if err != nil {
		return err
	}
	path, leaf, err := appendRest(path, encoded)
	if err != nil {
		return err
	}
	if !leaf {
		_, err := child(path, items, each)
		return err
	}
	value, _, err := rlp.SplitString(items)
	switch {
	case err != nil:
		return err
	case !within:
		return errors.New("a leaf with its value")
	case len(path) != evm.KeyNibbles:
		return fmt.Errorf("a leaf whose key has %d nibbles", len(path))
	}
	// The value of a leaf is itself encoded.
	word, behind, err := rlp.SplitString(value)
	if err != nil || len(behind) > 0 {
		return fmt.Errorf("a leaf with the value %#x", value)
	}
	each(below{value: word, key: evm.NibblesKey(path)})
	return nil
}

// child passes the first of items, the child at a path, to each, and returns the others.
func child(path, items []byte, each func(below)) (rest []byte, err error) {
	kind, content, rest, err := rlp.Split(items)
	switch {
	case err != nil:
		return nil, err
	case kind == rlp.List:
		return rest, childrenOf(path, items[:len(items)-len(rest)], true, each)
	case len(content) == common.HashLength:
		each(below{path: path, hash: content})
	case len(content) > 0:
		return nil, fmt.Errorf("a child's hash of %d bytes", len(content))
	}
	return rest, nil
}

// appendRest appends a hex-prefix encoded part of a key to a path, one nibble per byte, and
// reports whether it belongs to a leaf.
func appendRest(path, encoded []byte) (longer []byte, leaf bool, err error) {
	path, leaf, ok := evm.AppendHexPrefix(path, encoded)
	if !ok {
		return nil, false, errors.New("an empty part of a key")
	}
	if len(path) > evm.KeyNibbles {
		return nil, false, fmt.Errorf("a key of %d nibbles", len(path))
	}
	return path, leaf, nil
}
