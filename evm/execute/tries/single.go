package tries

import (
	"errors"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Roots opens tries of one state of which only the hashes are wanted, not the nodes. It belongs to
// one goroutine, with all tries that it opened.
type Roots struct{ in Tries }

// NewRoots returns Roots with read and before as in [Tries.Begin].
func NewRoots(read Reader, before Before) *Roots {
	return &Roots{in: Tries{read: read, before: before, unlisted: true, limit: math.MaxInt, keccak: crypto.NewKeccakState()}}
}

// Borrow lets nodes use memory of earlier ones again, until giveBack is called. Call Borrow before
// Open, and giveBack when no trie is in use.
func (r *Roots) Borrow() (giveBack func()) {
	r.in.arena = newArena()
	return r.in.arena.release
}

// Trie is a single trie of which only the hash is wanted. It keeps all nodes that it has read.
type Trie struct {
	trie   *trie
	failed error // of an earlier call
}

var errIncomplete = errors.New("tries: an earlier change was not completed")

// Open returns the trie with a root.
func (r *Roots) Open(owner, root common.Hash) *Trie { return &Trie{trie: r.in.open(owner, root)} }

// Put sets the value of a key, which is not empty.
func (t *Trie) Put(key common.Hash, value []byte) error {
	return t.change(func() error { return t.trie.put(key, value) })
}

// Remove removes a key.
func (t *Trie) Remove(key common.Hash) error {
	return t.change(func() error { return t.trie.remove(key) })
}

// Hash returns the root of the trie as it is now.
func (t *Trie) Hash() (common.Hash, error) {
	err := t.change(func() error { return t.trie.in.commit(t.trie) })
	return t.trie.hash, err
}

// Root returns the root as it was hashed last.
func (t *Trie) Root() common.Hash { return t.trie.hash }

// Hash computes the roots of some of r's tries as they are now. Nodes are hashed together, which takes less
// time than trie by trie.
func (r *Roots) Hash(changed ...*Trie) error {
	all := make([]*trie, len(changed))
	for i, t := range changed {
		if t.failed != nil {
			return errIncomplete
		}
		all[i] = t.trie
	}
	err := r.in.commit(all...)
	for _, t := range changed {
		t.failed = err
	}
	return err
}

// change makes a change, if none has failed before: what it left may be half done.
func (t *Trie) change(make func() error) error {
	if t.failed != nil {
		return errIncomplete
	}
	t.failed = make()
	return t.failed
}
