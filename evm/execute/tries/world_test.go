package tries_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"
	"github.com/ethereum/go-ethereum/triedb/database"
	"github.com/holiman/uint256"
)

// place is where a node is stored.
type place struct {
	owner common.Hash
	path  string
}

// nodes is a database of trie nodes. It implements database.NodeDatabase.
type nodes struct {
	stored map[place][]byte
	reads  int
}

func (n *nodes) NodeReader(common.Hash) (database.NodeReader, error) { return n, nil }

func (n *nodes) Node(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	n.reads++
	blob, ok := n.stored[place{owner, string(path)}]
	if !ok {
		return nil, fmt.Errorf("no node at path %x of %x", path, owner)
	}
	return blob, nil
}

// changes are those of one block.
type changes struct {
	accounts map[common.Hash]*types.StateAccount
	slots    map[common.Hash]map[common.Hash]common.Hash
}

// world is a state that go-ethereum's tries and ours change alike.
type world struct {
	t        testing.TB
	nodes    nodes
	root     common.Hash
	accounts map[common.Hash]common.Hash // storage roots
	values   map[leafKey][]byte          // of all leaves
	before   tries.Before                // gives our tries the values; may be nil
}

// leafKey names a leaf.
type leafKey struct{ owner, key common.Hash }

// known is a [tries.Before] that returns all values as they are.
func (w *world) known(owner, key common.Hash) []byte { return w.values[leafKey{owner, key}] }

// reference applies changes with go-ethereum's tries, and returns the new state root, the
// storage roots, and the nodes that changed.
func (w *world) reference(c changes) (common.Hash, map[common.Hash]common.Hash, map[place]evm.Node) {
	w.t.Helper()
	changed := make(map[place]evm.Node)
	commit := func(owner common.Hash, tr *trie.Trie) common.Hash {
		root, set := tr.Commit(false)
		if set == nil {
			set = trienode.NewNodeSet(owner)
		}
		for path, n := range set.Nodes {
			if prev := set.Origins[path]; !bytes.Equal(n.Blob, prev) {
				changed[place{owner, path}] = evm.Node{Owner: owner, Path: path, Hash: n.Hash, Blob: n.Blob, Prev: prev}
			}
		}
		return root
	}
	set := func(tr *trie.Trie, key common.Hash, value []byte) {
		if len(value) == 0 {
			w.must(tr.Delete(key[:]))
			return
		}
		w.must(tr.Update(key[:], value))
	}
	open := func(id *trie.ID) *trie.Trie {
		tr, err := trie.New(id, &w.nodes)
		w.must(err)
		return tr
	}
	roots := maps.Clone(w.accounts)
	for owner, slots := range c.slots {
		tr := open(trie.StorageTrieID(w.root, owner, rootOr(w.accounts, owner)))
		for slot, word := range slots {
			var value []byte
			if word != (common.Hash{}) {
				value = w.encode(common.TrimLeftZeroes(word[:]))
			}
			set(tr, slot, value)
		}
		roots[owner] = commit(owner, tr)
	}
	tr := open(trie.StateTrieID(w.root))
	for address, account := range c.accounts {
		if account == nil {
			set(tr, address, nil)
			delete(roots, address)
			continue
		}
		filled := *account
		filled.Root = rootOr(roots, address)
		set(tr, address, w.encode(&filled))
	}
	return commit(common.Hash{}, tr), roots, changed
}

func rootOr(roots map[common.Hash]common.Hash, address common.Hash) common.Hash {
	if root, ok := roots[address]; ok {
		return root
	}
	return types.EmptyRootHash
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) encode(v any) []byte {
	w.t.Helper()
	encoded, err := rlp.EncodeToBytes(v)
	w.must(err)
	return encoded
}

// change applies changes with our tries, and returns what reference returns.
func (w *world) change(kept *tries.Tries, c changes) (common.Hash, map[common.Hash]common.Hash, []evm.Node) {
	w.t.Helper()
	kept.Begin(w.root, w.nodes.Node, w.before)
	roots := maps.Clone(w.accounts)
	accounts := make(map[common.Hash]*types.StateAccount)
	for address, account := range c.accounts {
		if account == nil {
			delete(roots, address)
			accounts[address] = nil
			continue
		}
		filled := *account
		before, err := kept.StorageRoot(address)
		w.must(err)
		filled.Root = before
		if slots := c.slots[address]; len(slots) > 0 {
			w.must(kept.SetSlots(address, before, slots))
		}
		accounts[address] = &filled
	}
	root, changed, err := kept.Commit(accounts)
	w.must(err)
	for address := range c.slots {
		roots[address] = accounts[address].Root
	}
	return root, roots, changed
}

// apply applies changes both ways and compares the results.
func (w *world) apply(kept *tries.Tries, c changes) {
	w.t.Helper()
	root, roots, want := w.reference(c)
	got, ours, changed := w.change(kept, c)
	if got != root || !maps.Equal(ours, roots) {
		w.t.Fatalf("the state root is %x, expected %x; storage roots %x, expected %x", got, root, ours, roots)
	}
	for _, n := range changed {
		at := place{n.Owner, n.Path}
		other, ok := want[at]
		if !ok || n.Hash != other.Hash || !bytes.Equal(n.Blob, other.Blob) || !bytes.Equal(n.Prev, other.Prev) {
			w.t.Fatalf("node at path %x of %x is\n%x, %x, before %x, expected\n%x, %x, before %x (changed: %v)",
				n.Path, n.Owner, n.Hash, n.Blob, n.Prev, other.Hash, other.Blob, other.Prev, ok)
		}
		delete(want, at)
		if w.nodes.stored[at] = n.Blob; len(n.Blob) == 0 {
			delete(w.nodes.stored, at)
		}
	}
	for at := range want {
		w.t.Fatalf("the node at path %x of %x changed, and is missing", at.path, at.owner)
	}
	w.root, w.accounts = root, roots
	w.note(c)
}

// note notes the values of the leaves after changes.
func (w *world) note(c changes) {
	for owner, slots := range c.slots {
		for slot, word := range slots {
			w.values[leafKey{owner, slot}] = nil
			if word != (common.Hash{}) {
				w.values[leafKey{owner, slot}] = w.encode(common.TrimLeftZeroes(word[:]))
			}
		}
	}
	for address, account := range c.accounts {
		at := leafKey{key: address}
		if w.values[at] = nil; account != nil {
			filled := *account
			filled.Root = rootOr(w.accounts, address)
			w.values[at] = w.encode(&filled)
		}
	}
}

func newWorld(t testing.TB) *world {
	return &world{
		t: t, nodes: nodes{stored: make(map[place][]byte)}, root: types.EmptyRootHash, accounts: make(map[common.Hash]common.Hash),
		values: make(map[leafKey][]byte),
	}
}

// key returns a key of a kind: nearly all like another one, so that there are extensions, deep
// branches and nodes short enough to be part of their parents; or of any bytes.
func key(r *rand.Rand) (k common.Hash) {
	if r.IntN(4) == 0 {
		for i := range k {
			k[i] = byte(r.Uint32())
		}
		return k
	}
	for range 1 + r.IntN(3) {
		k[r.IntN(3)*15+r.IntN(2)] = byte(r.IntN(3)) << (4 * r.IntN(2))
	}
	return k
}

// randomChanges changes some of the accounts that exist, and others.
func randomChanges(r *rand.Rand, w *world) changes {
	c := changes{make(map[common.Hash]*types.StateAccount), make(map[common.Hash]map[common.Hash]common.Hash)}
	for range r.IntN(12) {
		address := key(r)
		address[31] |= 1 // zero would be the account trie
		if r.IntN(3) == 0 && rootOr(w.accounts, address) == types.EmptyRootHash {
			c.accounts[address] = nil
			delete(c.slots, address)
			continue
		}
		account := types.NewEmptyStateAccount()
		account.Nonce, account.Balance = uint64(r.IntN(3)), uint256.NewInt(uint64(r.IntN(3)))
		c.accounts[address] = account
		slots := make(map[common.Hash]common.Hash)
		for range r.IntN(2) * r.IntN(12) {
			slots[key(r)] = common.BytesToHash([]byte{byte(r.IntN(3))})
		}
		if len(slots) > 0 {
			c.slots[address] = slots
		}
	}
	return c
}
