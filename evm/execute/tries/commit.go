package tries

import (
	"bytes"
	"math/bits"
	"slices"
	"sync"

	"ashlar/evm"
	"ashlar/evm/keccak"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// commit computes the hashes of some tries, and records the nodes that changed since the last commit
// in t.nodes, if that is wanted. A node whose children have changed and changed back is not recorded.
//
// Nodes are hashed level by level, from the deepest up: those of one level, of all tries, together.
func (t *Tries) commit(changed ...*trie) error {
	c := committings.Get().(*committing)
	defer c.giveBack()
	for _, of := range changed {
		if of.root != nil {
			c.gather(of, of.root, t.path[:0])
		}
	}
	if !t.unlisted {
		if t.nodes == nil {
			t.nodes = newList()
		}
		t.nodes = slices.Grow(t.nodes, c.count)
	}
	if err := c.levelsUp(); err != nil {
		return err
	}
	for _, of := range changed {
		of.hash = types.EmptyRootHash
		if of.root != nil {
			var buffer [1 + common.HashLength]byte
			of.hash = common.BytesToHash(appendReference(buffer[:0], of.root, nil)[1:])
		}
		for path, before := range of.gone {
			of.record([]byte(path), common.Hash{}, nil, before)
		}
		clear(of.gone)
	}
	return nil
}

// committing is memory for one commit.
type committing struct {
	levels  [evm.KeyNibbles + 1][]changedNode // by the length of the path
	deepest int
	count   int    // of nodes
	paths   []byte // of all nodes
	encoded [][]byte
	hashes  []common.Hash
}

var committings = sync.Pool{New: func() any { return new(committing) }}

// changedNode is a node that has changed, at a path in a trie.
type changedNode struct {
	of   *trie
	node node
	path []byte
}

// gather adds a node and all below it that have changed. It writes the paths of nodes below into
// the rest of the path's array.
func (c *committing) gather(of *trie, n node, path []byte) {
	if w := state(n); w == nil || !w.dirty {
		return
	}
	from := len(c.paths)
	c.paths = append(c.paths, path...)
	c.levels[len(path)] = append(c.levels[len(path)], changedNode{of, n, c.paths[from:]})
	c.deepest, c.count = max(c.deepest, len(path)), c.count+1
	switch n := n.(type) {
	case *extension:
		c.gather(of, n.child, append(path, n.key...))
	case *branch:
		for left := n.changed & n.has; left != 0; left &= left - 1 {
			i := bits.TrailingZeros16(left)
			c.gather(of, n.children[i], append(path, byte(i)))
		}
	}
}

// levelsUp encodes and hashes the nodes of all levels.
func (c *committing) levelsUp() error {
	for depth := c.deepest; depth >= 0; depth-- {
		level := c.levels[depth]
		c.encoded = c.encoded[:0]
		for _, n := range level {
			encoded, err := n.of.in.encodeChanged(n.node)
			if err != nil {
				return err
			}
			c.encoded = append(c.encoded, encoded)
		}
		c.hashes = slices.Grow(c.hashes[:0], len(level))[:len(level)]
		keccak.Sum(c.encoded, c.hashes)
		for i, n := range level {
			n.of.committed(n.node, n.path, c.encoded[i], c.hashes[i])
		}
		clear(c.encoded)
	}
	return nil
}

// reusedNodes is how many nodes a commit may have for its memory to be used again. A block of an import
// has some hundred.
const reusedNodes = 1 << 16

var lists = sync.Pool{New: func() any { return new([]evm.Node) }}

// newList returns an empty list of nodes, with the memory of one that was released.
func newList() []evm.Node { return *lists.Get().(*[]evm.Node) }

// Release gives the memory of a list that [Tries.Commit] returned to later commits. Nobody may use the
// list afterwards, but its blobs stay. Callers need not release a list. Those of an import would be a
// tenth of what it leaves to the collector.
func Release(nodes []evm.Node) {
	if cap(nodes) > reusedNodes {
		return
	}
	clear(nodes)
	nodes = nodes[:0]
	lists.Put(&nodes)
}

// giveBack drops all nodes, and lets another commit use the memory.
func (c *committing) giveBack() {
	if c.count > reusedNodes {
		return
	}
	for depth := range c.deepest + 1 {
		clear(c.levels[depth])
		c.levels[depth] = c.levels[depth][:0]
	}
	clear(c.encoded) // after an error
	c.deepest, c.count, c.paths = 0, 0, c.paths[:0]
	committings.Put(c)
}

// committed sets the encoding and hash of a node at a path, and records it if it has changed.
func (t *trie) committed(n node, path, encoded []byte, hash common.Hash) {
	w := state(n)
	var before []byte
	if len(t.gone) > 0 {
		before = t.gone[string(path)]
		delete(t.gone, string(path))
	}
	if stored(w.rlp, path) {
		before = w.rlp
	}
	t.in.bytes += len(encoded) - len(w.rlp)
	w.rlp, w.dirty = encoded, false
	if stored(encoded, path) {
		w.hash = hash
		if !bytes.Equal(encoded, before) { // else it has changed and changed back
			t.record(path, hash, encoded, before)
		}
	} else if before != nil {
		t.record(path, common.Hash{}, nil, before)
	}
}

// record records a node that has changed, with its encodings now and before, if that is wanted.
func (t *trie) record(path []byte, hash common.Hash, blob, before []byte) {
	if !t.in.unlisted {
		t.in.nodes = append(t.in.nodes, evm.Node{Owner: t.owner, Path: string(path), Hash: hash, Blob: blob, Prev: before})
	}
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

// encodeChanged returns the RLP of a node, whose children are not dirty.
func (t *Tries) encodeChanged(n node) ([]byte, error) {
	var buffer [shortBytes]byte
	switch n := n.(type) {
	case *leaf:
		return t.list(appendLeaf(buffer[:0], n.key, n.value)), nil
	case *extension:
		return t.list(appendReference(appendKey(buffer[:0], n.key, false), n.child, below)), nil
	case *branch:
		return t.encodeBranch(n)
	}
	return nil, errMalformed
}

// below stands for the path of any node below the root: of the path, a reference depends only on
// whether it is empty.
var below = []byte{0}

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

func (t *Tries) encodeBranch(n *branch) ([]byte, error) {
	var before []byte
	var err error
	if n.rlp != nil {
		if before, _, err = rlp.SplitList(n.rlp); err != nil {
			return nil, errMalformed
		}
	}
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
	return t.list(append(content, rlp.EmptyString...)), nil
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
