package tries

import (
	"bytes"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// commit computes the hash of the trie, and appends the nodes that changed since the last
// commit to nodes, if they are listed. A node whose children have changed and changed back is not
// appended.
func (t *trie) commit(nodes []evm.Node) ([]evm.Node, error) {
	c := committing{trie: t, nodes: nodes}
	t.hash = types.EmptyRootHash
	if t.root != nil {
		reference, err := c.commit(t.root, t.in.path[:0])
		if err != nil {
			return nil, err
		}
		t.hash = common.BytesToHash(reference[1:])
	}
	for path, before := range t.gone {
		c.add([]byte(path), common.Hash{}, nil, before)
	}
	clear(t.gone)
	return c.nodes, nil
}

type committing struct {
	*trie
	nodes []evm.Node
}

// add lists a node that has changed, with its encodings now and before.
func (c *committing) add(path []byte, hash common.Hash, blob, before []byte) {
	if !c.in.unlisted {
		c.nodes = append(c.nodes, evm.Node{Owner: c.owner, Path: string(path), Hash: hash, Blob: blob, Prev: before})
	}
}

// commit encodes a node and all below it that have changed, and returns the RLP by which its
// parent refers to it. It writes the paths of nodes below into the rest of the path's array.
func (c *committing) commit(n node, path []byte) (reference []byte, err error) {
	if n, ok := n.(unread); ok {
		return n, nil
	}
	w := state(n)
	if !w.dirty {
		return w.reference(path), nil
	}
	encoded, err := c.encode(n, path)
	if err != nil {
		return nil, err
	}
	before := c.gone[string(path)]
	delete(c.gone, string(path))
	if stored(w.rlp, path) {
		before = w.rlp
	}
	c.in.bytes += len(encoded) - len(w.rlp)
	w.rlp, w.dirty = encoded, false
	if stored(encoded, path) {
		if w.hash, err = c.in.hashOf(encoded); err != nil {
			return nil, err
		}
		if !bytes.Equal(encoded, before) { // else it has changed and changed back
			c.add(path, w.hash, encoded, before)
		}
	} else if before != nil {
		c.add(path, common.Hash{}, nil, before)
	}
	return w.reference(path), nil
}

// reference returns the RLP by which a parent refers to a node that is not dirty.
func (w *written) reference(path []byte) []byte {
	if !stored(w.rlp, path) {
		return w.rlp
	}
	return appendString(make([]byte, 0, 1+common.HashLength), w.hash[:])
}

// encode returns the RLP of a node, after a commit of its children.
func (c *committing) encode(n node, path []byte) ([]byte, error) {
	switch n := n.(type) {
	case *leaf:
		return encodeShort(n.key, true, appendString(nil, n.value)), nil
	case *extension:
		child, err := c.commit(n.child, append(path, n.key...))
		return encodeShort(n.key, false, child), err
	case *branch:
		return c.encodeBranch(n, path)
	}
	return nil, errMalformed
}

func encodeShort(key []byte, isLeaf bool, rest []byte) []byte {
	var buffer [1 + common.HashLength]byte
	compact := appendCompact(buffer[:0], key, isLeaf)
	content := appendString(make([]byte, 0, 2+len(compact)+len(rest)), compact)
	return appendList(append(content, rest...))
}

func (c *committing) encodeBranch(n *branch, path []byte) (_ []byte, err error) {
	var before []byte
	if n.rlp != nil {
		if before, _, err = rlp.SplitList(n.rlp); err != nil {
			return nil, errMalformed
		}
	}
	var buffer [width*(1+common.HashLength) + 1]byte
	content := buffer[:0]
	for i := range byte(width) {
		var item []byte
		if before != nil {
			if item, before, err = splitItem(before); err != nil {
				return nil, err
			}
		}
		switch {
		case n.has&(1<<i) == 0:
			item = rlp.EmptyString
		case n.changed&(1<<i) != 0: // others are as in n.rlp
			if item, err = c.commit(n.children[i], append(path, i)); err != nil {
				return nil, err
			}
		}
		content = append(content, item...)
	}
	n.changed = 0
	return appendList(append(content, rlp.EmptyString...)), nil
}

// appendCompact appends the hex-prefix encoding of nibbles.
func appendCompact(dst, key []byte, isLeaf bool) []byte {
	const oddFlag, leafFlag = 0x10, 0x20
	var first byte
	if isLeaf {
		first = leafFlag
	}
	if len(key)%2 == 1 {
		first |= oddFlag | key[0]
		key = key[1:]
	}
	dst = append(dst, first)
	for i := 0; i < len(key); i += 2 {
		dst = append(dst, key[i]<<4|key[i+1])
	}
	return dst
}

// appendString appends the RLP of a string of less than 256 bytes.
func appendString(dst, s []byte) []byte {
	const short = 56
	switch {
	case len(s) == 1 && s[0] < 0x80:
		return append(dst, s[0])
	case len(s) < short:
		return append(append(dst, 0x80+byte(len(s))), s...)
	}
	return append(append(dst, 0xb8, byte(len(s))), s...)
}

// appendList returns the RLP of a list with a content of less than 64 KiB.
func appendList(content []byte) []byte {
	const short = 56
	list := make([]byte, 0, 3+len(content))
	switch size := len(content); {
	case size < short:
		list = append(list, 0xc0+byte(size))
	case size < 1<<8:
		list = append(list, 0xf8, byte(size))
	default:
		list = append(list, 0xf9, byte(size>>8), byte(size))
	}
	return append(list, content...)
}
