package tries

// evict drops nodes until half of the limit is free: first those that were not used since the
// last time, then those that were not used for half of that time, then all.
func (t *Tries) evict() {
	since := t.round - t.evicted
	for _, oldest := range []uint32{t.evicted, t.round - since/2, t.round + 1} {
		t.drop(oldest)
		if t.bytes <= t.limit/2 {
			break
		}
	}
	t.evicted = t.round
}

// drop drops nodes that were last used before a round, and counts the others. A node was used
// whenever one below it was. None is dirty.
func (t *Tries) drop(oldest uint32) {
	t.bytes = 0
	for owner, storage := range t.storage {
		if t.dropBelow(&storage.root, nil, oldest); isUnread(storage.root) {
			delete(t.storage, owner)
		}
	}
	t.bytes += trieBytes * len(t.storage)
	t.dropBelow(&t.accounts.root, nil, oldest)
}

// dropBelow drops nodes at and below a place, where one without contents is left.
func (t *Tries) dropBelow(at *node, path []byte, oldest uint32) {
	w := state(*at)
	if w == nil {
		return
	}
	if w.round < oldest {
		*at = unread(w.reference(path))
		return
	}
	t.bytes += size(*at)
	// Only whether a path is empty matters to a reference.
	below := []byte{0}
	switch n := (*at).(type) {
	case *extension:
		t.dropBelow(&n.child, below, oldest)
	case *branch:
		for i := range n.children {
			if t.dropBelow(&n.children[i], below, oldest); isUnread(n.children[i]) {
				n.children[i] = nil // as in the branch's own RLP
			}
		}
	}
}

func isUnread(n node) bool {
	_, ok := n.(unread)
	return ok
}
