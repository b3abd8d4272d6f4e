package tries

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// trieBytes estimates the memory of a trie without nodes.
const trieBytes = 200

// trie is one trie. Between two commits it is changed in memory.
type trie struct {
	in    *Tries
	owner common.Hash
	root  node
	hash  common.Hash       // of root, as of the last commit
	gone  map[string][]byte // nodes that were at a path at the last commit and no longer are; nil if changes are not listed

	sought common.Hash // key that get, put or remove was called for
	leaf   leafBefore  // of that key
}

// leafBefore is the value of a key as of the last commit, if it is known.
type leafBefore struct {
	asked bool
	value []byte
}

// open returns the trie with a root, of which nothing is in memory.
func (t *Tries) open(owner, root common.Hash) *trie {
	opened := &trie{in: t, owner: owner, hash: root}
	if !t.unlisted {
		opened.gone = make(map[string][]byte)
	}
	if root != types.EmptyRootHash && root != (common.Hash{}) {
		opened.root = unread(appendString(nil, root[:]))
	}
	return opened
}

// load returns a node with its contents, which are read if they are not in memory.
func (t *trie) load(n node, path []byte) (node, error) {
	if reference, ok := n.(unread); ok {
		return t.read(reference, path)
	}
	if used := state(n); used != nil {
		used.round = t.in.round
	}
	return n, nil
}

// read returns the node that a parent refers to.
func (t *trie) read(reference, path []byte) (node, error) {
	encoded := reference
	var hash common.Hash
	if len(reference) == 1+common.HashLength {
		hash = common.BytesToHash(reference[1:])
		if encoded = t.in.takeEncoded(reference[1:]); encoded == nil {
			var err error
			if encoded, err = t.in.read(t.owner, path, hash); err != nil {
				return nil, err
			}
		}
	}
	n, err := t.in.decode(encoded, len(path))
	if err != nil {
		return nil, fmt.Errorf("trie of %x: node at path %x: %w", t.owner, path, err)
	}
	w := state(n)
	w.hash, w.round = hash, t.in.round
	t.in.bytes += size(n)
	return n, nil
}

// loadChild returns the child of a branch at a depth on the way to the key that is sought. If it
// is that key's leaf, whose value is known, it is not read: its hash proves that it is the one.
//
//	branch  hash of child 7        keccak(leaf of the rest of the key and its value) = that hash?
func (t *trie) loadChild(n *branch, key []byte, at int) (node, error) {
	i := key[at]
	if n.has&(1<<i) == 0 {
		return nil, nil
	}
	reference, isUnread := []byte(nil), n.children[i] == nil
	if isUnread {
		var err error
		if reference, err = n.item(i); err != nil {
			return nil, err
		}
	} else if reference, isUnread = n.children[i].(unread); !isUnread {
		return t.load(n.children[i], key[:at+1])
	}
	if len(reference) == 1+common.HashLength && t.mayBeLeaf(n, reference) {
		if known, err := t.knownLeaf(reference, key[at+1:]); known != nil || err != nil {
			return known, err
		}
	}
	return t.read(reference, key[:at+1])
}

// mayBeLeaf reports whether it is worth a hash to find out that an unread child is the leaf that
// is sought. Below a branch with all children there is hardly ever a leaf. Where evicted nodes are
// kept, nearly all branches are among them.
func (t *trie) mayBeLeaf(parent *branch, reference []byte) bool {
	const all = 1<<width - 1
	if t.in.evicted == nil {
		return parent.has != all
	}
	return t.in.evicted.find(reference[1:]) == nil && t.in.evictedLeaves.find(reference[1:]) == nil
}

// knownLeaf returns the leaf of the key that is sought with the rest of the key, in nibbles, if
// its value is known and a parent refers to it.
func (t *trie) knownLeaf(reference, rest []byte) (node, error) {
	if !t.leaf.asked && t.in.before != nil {
		t.leaf = leafBefore{true, t.in.before(t.owner, t.sought)}
	}
	if len(t.leaf.value) == 0 {
		return nil, nil
	}
	var buffer [shortBytes]byte
	encoded := appendList(t.in.attempt[:0], appendLeaf(buffer[:0], rest, t.leaf.value))
	t.in.attempt = encoded
	hash, err := t.in.hashOf(encoded)
	if err != nil || !bytes.Equal(hash[:], reference[1:]) {
		return nil, err
	}
	found := t.in.arena.leaf(rest, t.leaf.value, t.in.arena.clone(encoded), hash)
	found.round = t.in.round
	t.in.bytes += size(found)
	return found, nil
}

// seek prepares to get, put or remove a key, and appends its nibbles to dst.
func (t *trie) seek(key common.Hash, dst []byte) []byte {
	t.sought, t.leaf = key, leafBefore{}
	return evm.AppendNibbles(dst, key[:])
}

// fresh returns a node that is new at its path.
func (t *trie) fresh(n node) node {
	made := state(n)
	made.dirty, made.round = true, t.in.round
	t.in.bytes += size(n)
	return n
}

// detach notes that a node is no longer at its path.
func (t *trie) detach(n node, path []byte) {
	if before := state(n); !t.in.unlisted && stored(before.rlp, path) {
		t.gone[string(path)] = before.rlp
	}
}

// stored reports whether a node is stored under its path. A short one is part of its parent.
func stored(encoded, path []byte) bool {
	return len(encoded) >= common.HashLength || len(encoded) > 0 && len(path) == 0
}

// get returns the value of a key; nil if there is none.
func (t *trie) get(key common.Hash) ([]byte, error) {
	var buffer [evm.KeyNibbles]byte
	value, root, err := t.getBelow(t.root, t.seek(key, buffer[:0]), 0)
	if err == nil {
		t.root = root
	}
	return value, err
}

// getBelow returns the value of a key below a node at a depth, and the node in memory.
func (t *trie) getBelow(n node, key []byte, at int) (value []byte, loaded node, err error) {
	if n, err = t.load(n, key[:at]); err != nil {
		return nil, nil, err
	}
	switch n := n.(type) {
	case *leaf:
		if bytes.Equal(n.key, key[at:]) {
			return n.value, n, nil
		}
	case *extension:
		if !bytes.HasPrefix(key[at:], n.key) {
			break
		}
		value, child, err := t.getBelow(n.child, key, at+len(n.key))
		if err != nil {
			return nil, nil, err
		}
		n.child = child
		return value, n, nil
	case *branch:
		child, err := t.loadChild(n, key, at)
		if child == nil || err != nil {
			return nil, n, err
		}
		value, child, err := t.getBelow(child, key, at+1)
		if err != nil {
			return nil, nil, err
		}
		n.set(key[at], child, false)
		return value, n, nil
	}
	return nil, n, nil
}

// put sets the value of a key. The value is not empty.
func (t *trie) put(key common.Hash, value []byte) error {
	var buffer [evm.KeyNibbles]byte
	root, _, err := t.insert(t.root, t.seek(key, buffer[:0]), 0, value)
	if err == nil {
		t.root = root
	}
	return err
}

// insert sets the value of a key below a node at a depth, and returns the node in its place
// and whether anything changed.
func (t *trie) insert(n node, key []byte, at int, value []byte) (_ node, changed bool, err error) {
	if n, err = t.load(n, key[:at]); err != nil {
		return nil, false, err
	}
	switch n := n.(type) {
	case nil:
		return t.newLeaf(key[at:], value), true, nil
	case *leaf:
		if !bytes.Equal(n.key, key[at:]) {
			return t.splitLeaf(n, key, at, value), true, nil
		}
		changed = !bytes.Equal(n.value, value)
		n.value, n.dirty = value, n.dirty || changed
		return n, changed, nil
	case *extension:
		if !bytes.HasPrefix(key[at:], n.key) {
			return t.splitExtension(n, key, at, value), true, nil
		}
		if n.child, changed, err = t.insert(n.child, key, at+len(n.key), value); err != nil {
			return nil, false, err
		}
		n.dirty = n.dirty || changed
		return n, changed, nil
	case *branch:
		child, err := t.loadChild(n, key, at)
		if err != nil {
			return nil, false, err
		}
		if child, changed, err = t.insert(child, key, at+1, value); err != nil {
			return nil, false, err
		}
		n.set(key[at], child, changed)
		return n, changed, nil
	}
	return nil, false, errMalformed
}

func (t *trie) newLeaf(key, value []byte) node {
	return t.fresh(t.in.arena.leaf(key, value, nil, common.Hash{}))
}

// splitLeaf puts a branch, and an extension if they share nibbles, above a leaf and a new one.
func (t *trie) splitLeaf(n *leaf, key []byte, at int, value []byte) node {
	shared := sharedPrefix(n.key, key[at:])
	t.detach(n, key[:at])
	b := t.in.arena.branch(nil)
	b.set(n.key[shared], t.newLeaf(n.key[shared+1:], n.value), true)
	b.set(key[at+shared], t.newLeaf(key[at+shared+1:], value), true)
	return t.extend(key[at:at+shared], t.fresh(b))
}

// splitExtension puts a branch into an extension. The node below stays at its path.
func (t *trie) splitExtension(n *extension, key []byte, at int, value []byte) node {
	shared := sharedPrefix(n.key, key[at:])
	t.detach(n, key[:at])
	b := t.in.arena.branch(nil)
	b.set(n.key[shared], t.extend(n.key[shared+1:], n.child), true)
	b.set(key[at+shared], t.newLeaf(key[at+shared+1:], value), true)
	return t.extend(key[at:at+shared], t.fresh(b))
}

// extend puts an extension above a branch, or returns the branch if the extension is empty.
func (t *trie) extend(key []byte, child node) node {
	if len(key) == 0 {
		return child
	}
	return t.fresh(&extension{key: bytes.Clone(key), child: child})
}

func sharedPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// remove removes a key.
func (t *trie) remove(key common.Hash) error {
	var buffer [evm.KeyNibbles]byte
	root, _, err := t.removeBelow(t.root, t.seek(key, buffer[:0]), 0)
	if err == nil {
		t.root = root
	}
	return err
}

// removeBelow removes a key below a node at a depth, and returns the node in its place, nil if
// there is none, and whether anything changed.
func (t *trie) removeBelow(n node, key []byte, at int) (_ node, changed bool, err error) {
	if n, err = t.load(n, key[:at]); err != nil {
		return nil, false, err
	}
	switch n := n.(type) {
	case nil:
		return nil, false, nil
	case *leaf:
		if !bytes.Equal(n.key, key[at:]) {
			return n, false, nil
		}
		t.detach(n, key[:at])
		return nil, true, nil
	case *extension:
		if !bytes.HasPrefix(key[at:], n.key) {
			return n, false, nil
		}
		below := at + len(n.key)
		child, changed, err := t.removeBelow(n.child, key, below)
		if err != nil {
			return nil, false, err
		}
		if n.child = child; !changed {
			return n, false, nil
		}
		if child == nil {
			return nil, false, errMalformed // a leaf below an extension
		}
		if _, ok := child.(*branch); ok {
			n.dirty = true
			return n, true, nil
		}
		t.detach(n, key[:at])
		return t.merge(n.key, child, key[:below]), true, nil
	case *branch:
		child, err := t.loadChild(n, key, at)
		if err != nil {
			return nil, false, err
		}
		if child, changed, err = t.removeBelow(child, key, at+1); err != nil {
			return nil, false, err
		}
		n.set(key[at], child, changed)
		if bits.OnesCount16(n.has) > 1 {
			return n, changed, nil
		}
		return t.collapse(n, key[:at])
	}
	return nil, false, errMalformed
}

// collapse returns what takes the place of a branch with a single child.
func (t *trie) collapse(n *branch, path []byte) (_ node, changed bool, err error) {
	i := byte(bits.TrailingZeros16(n.has))
	below := append(slices.Clip(path), i)
	child, err := n.child(i)
	if err != nil {
		return nil, false, err
	}
	if child, err = t.load(child, below); err != nil {
		return nil, false, err
	}
	t.detach(n, path)
	return t.merge(below[len(path):], child, below), true, nil
}

// merge returns one node in place of a key and a node in memory below it, which was at a path.
func (t *trie) merge(key []byte, child node, path []byte) node {
	switch child := child.(type) {
	case *leaf:
		t.detach(child, path)
		return t.newLeaf(slices.Concat(key, child.key), child.value)
	case *extension:
		t.detach(child, path)
		return t.extend(slices.Concat(key, child.key), child.child)
	}
	return t.extend(key, child)
}
