package tries

import (
	"bytes"
	"math/bits"

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
		if err := c.commit(t.root, t.in.path[:0]); err != nil {
			return nil, err
		}
		var buffer [1 + common.HashLength]byte
		t.hash = common.BytesToHash(appendReference(buffer[:0], t.root, nil)[1:])
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

// commit encodes a node and all below it that have changed. It writes the paths of nodes below into
// the rest of the path's array.
func (c *committing) commit(n node, path []byte) error {
	w := state(n)
	if w == nil || !w.dirty {
		return nil
	}
	encoded, err := c.encode(n, path)
	if err != nil {
		return err
	}
	var before []byte
	if len(c.gone) > 0 {
		before = c.gone[string(path)]
		delete(c.gone, string(path))
	}
	if stored(w.rlp, path) {
		before = w.rlp
	}
	c.in.bytes += len(encoded) - len(w.rlp)
	w.rlp, w.dirty = encoded, false
	if stored(encoded, path) {
		if w.hash, err = c.in.hashOf(encoded); err != nil {
			return err
		}
		if !bytes.Equal(encoded, before) { // else it has changed and changed back
			c.add(path, w.hash, encoded, before)
		}
	} else if before != nil {
		c.add(path, common.Hash{}, nil, before)
	}
	return nil
}

// appendReference appends the RLP by which a parent refers to a node that is not dirty.
func appendReference(dst []byte, n node, path []byte) []byte {
	if n, ok := n.(unread); ok {
		return append(dst, n...)
	}
	w := state(n)
	if !stored(w.rlp, path) {
		return append(dst, w.rlp...)
	}
	return appendString(dst, w.hash[:])
}

// encode returns the RLP of a node, after a commit of its children.
func (c *committing) encode(n node, path []byte) ([]byte, error) {
	var buffer [shortBytes]byte
	switch n := n.(type) {
	case *leaf:
		return c.in.list(appendLeaf(buffer[:0], n.key, n.value)), nil
	case *extension:
		path = append(path, n.key...)
		if err := c.commit(n.child, path); err != nil {
			return nil, err
		}
		return c.in.list(appendReference(appendKey(buffer[:0], n.key, false), n.child, path)), nil
	case *branch:
		return c.encodeBranch(n, path)
	}
	return nil, errMalformed
}

// shortBytes is the space that the content of nearly every leaf and extension fits into: the rest
// of a key, and an account.
const shortBytes = 2 + 1 + common.HashLength + 2 + 128

// appendLeaf appends the RLP of the items of a leaf.
func appendLeaf(dst, key, value []byte) []byte { return appendString(appendKey(dst, key, true), value) }

// appendKey appends the RLP of the first item of a leaf or an extension.
func appendKey(dst, key []byte, isLeaf bool) []byte {
	var buffer [1 + common.HashLength]byte
	return appendString(dst, appendCompact(buffer[:0], key, isLeaf))
}

func (c *committing) encodeBranch(n *branch, path []byte) ([]byte, error) {
	for left := n.changed & n.has; left != 0; left &= left - 1 {
		i := bits.TrailingZeros16(left)
		if err := c.commit(n.children[i], append(path, byte(i))); err != nil {
			return nil, err
		}
	}
	var before []byte
	var err error
	if n.rlp != nil {
		if before, _, err = rlp.SplitList(n.rlp); err != nil {
			return nil, errMalformed
		}
	}
	below := []byte{0} // only whether a path is empty matters to a reference
	var buffer [width*(1+common.HashLength) + 1]byte
	content := buffer[:0]
	for i := range width {
		var item []byte
		if before != nil {
			if item, before, err = splitItem(before); err != nil {
				return nil, err
			}
		}
		switch {
		case n.has&(1<<i) == 0:
			content = append(content, rlp.EmptyString...)
		case n.changed&(1<<i) != 0: // others are as in n.rlp
			content = appendReference(content, n.children[i], below)
		default:
			content = append(content, item...)
		}
	}
	n.changed = 0
	return c.in.list(append(content, rlp.EmptyString...)), nil
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

// list returns the RLP of a list with a content of less than 64 KiB.
func (t *Tries) list(content []byte) []byte {
	return appendList(t.arena.room(listHead+len(content)), content)
}

// listHead is the maximum length of what comes before the content of a list.
const listHead = 3

// appendList appends the RLP of a list with a content of less than 64 KiB.
func appendList(list, content []byte) []byte {
	const short = 56
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
