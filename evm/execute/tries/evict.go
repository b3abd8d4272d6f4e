package tries

import (
	"math"

	"github.com/ethereum/go-ethereum/common"
)

// leafAge is how many times as old as it is a leaf counts when nodes are evicted. A leaf whose
// value is known takes a hash to make again, and leaves are most of the nodes.
const leafAge = 4

// ages is the number of groups into which a census puts nodes by their age.
const ages = 256

// evict drops the nodes that were not used for the longest time, until a quarter of the limit is
// free.
func (t *Tries) evict() {
	c := census{now: t.round, step: (t.round-t.oldest)/ages + 1}
	for _, storage := range t.storage {
		c.count(storage.root)
	}
	c.count(t.accounts.root)
	kept, limit := trieBytes*len(t.storage), t.limit-t.limit/4
	age := 0
	for age < ages && kept+c.bytes[age] <= limit {
		kept += c.bytes[age]
		age++
	}
	t.drop(uint32(age) * c.step)
}

// census counts the bytes of nodes by their age.
type census struct {
	now, step uint32 // rounds
	bytes     [ages]int
}

func (c *census) count(n node) {
	w := state(n)
	if w == nil {
		return
	}
	c.bytes[min(ageOf(n, w, c.now)/c.step, ages-1)] += size(n)
	switch n := n.(type) {
	case *extension:
		c.count(n.child)
	case *branch:
		for _, child := range n.children {
			c.count(child)
		}
	}
}

// ageOf returns for how many rounds a node counts as not used.
func ageOf(n node, w *written, now uint32) uint32 {
	age := now - w.round
	if _, ok := n.(*leaf); ok {
		age = min(age, math.MaxUint32/leafAge) * leafAge
	}
	return age
}

// drop drops nodes from an age on, and counts the others. A node was used whenever one below it
// was. None is dirty.
func (t *Tries) drop(age uint32) {
	t.bytes = 0
	if t.oldest = 0; age <= t.round {
		t.oldest = t.round - age
	}
	for owner, storage := range t.storage {
		if t.dropBelow(&storage.root, nil, age); isUnread(storage.root) {
			delete(t.storage, owner)
		}
	}
	t.bytes += trieBytes * len(t.storage)
	t.dropBelow(&t.accounts.root, nil, age)
}

// dropBelow drops nodes at and below a place, where one without contents is left.
func (t *Tries) dropBelow(at *node, path []byte, age uint32) {
	w := state(*at)
	if w == nil {
		return
	}
	drops := ageOf(*at, w, t.round) >= age
	if !drops {
		t.bytes += size(*at)
	}
	// Only whether a path is empty matters to a reference.
	below := []byte{0}
	switch n := (*at).(type) {
	case *extension:
		t.dropBelow(&n.child, below, age)
	case *branch:
		for i := range n.children {
			if t.dropBelow(&n.children[i], below, age); isUnread(n.children[i]) {
				n.children[i] = nil // as in the branch's own RLP
			}
		}
	}
	if drops {
		if stored(w.rlp, path) {
			t.encode(*at, w)
		}
		*at = unread(appendReference(make([]byte, 0, 1+common.HashLength), *at, path))
	}
}

// encode keeps a node that is evicted.
func (t *Tries) encode(n node, w *written) {
	if _, ok := n.(*leaf); ok {
		t.evictedLeaves.add(w.hash, w.rlp)
		return
	}
	t.evicted.add(w.hash, w.rlp)
}

// takeEncoded returns the RLP of a node that was evicted, and keeps it no longer; nil if it is
// not kept.
func (t *Tries) takeEncoded(hash []byte) []byte {
	if found := t.evicted.take(hash); found != nil {
		return found
	}
	return t.evictedLeaves.take(hash)
}

func isUnread(n node) bool {
	_, ok := n.(unread)
	return ok
}
