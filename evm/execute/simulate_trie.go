package execute

import (
	"sync"

	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// simulatedTries are the tries that StateDB gets while it simulates blocks, whose roots are wanted and
// whose nodes are not.
//
// StateDB asks for the root of each storage trie in a goroutine of its own. That goroutine would
// grow its stack several times on the way into the store, which took 6 % of a simulation, so it
// only notes the changes. They are made when StateDB updates the account:
//
//	StateDB, goroutines   UpdateStorage, UpdateStorage, Hash     noted
//	StateDB               UpdateAccount(account)                 made; account.Root is set
//
// Where a read takes a round trip, waiting side by side is worth more.
type simulatedTries struct {
	db         *stateDatabase
	seen       *seenValues
	sideBySide bool         // each storage trie is changed in the goroutine that asks for its root
	roots      *tries.Roots // of the goroutine that simulates

	mu    sync.Mutex
	noted map[common.Hash]*simulatedTrie // storage tries with changes that are not made yet, by owner; guarded by mu
}

func newSimulatedTries(d *stateDatabase, sideBySide bool) *simulatedTries {
	s := &simulatedTries{db: d, seen: newSeenValues(), sideBySide: sideBySide, noted: make(map[common.Hash]*simulatedTrie)}
	s.roots = s.newRoots()
	return s
}

func (s *simulatedTries) newRoots() *tries.Roots {
	return tries.NewRoots(s.db.nodes().Node, s.seen.before)
}

// open returns the trie of an owner. Storage tries are opened by several goroutines.
func (s *simulatedTries) open(owner, root common.Hash) *simulatedTrie {
	return &simulatedTrie{tries: s, owner: owner, root: root}
}

// note defers the changes of a storage trie until UpdateAccount.
func (s *simulatedTries) note(t *simulatedTrie) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted[t.owner] = t
}

// take returns the storage trie of an owner, if it has changes that are to be made; else nil.
func (s *simulatedTries) take(owner common.Hash) *simulatedTrie {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.noted[owner]
	delete(s.noted, owner)
	return t
}

// simulatedTrie is one of simulatedTries. It belongs to one goroutine at a time.
type simulatedTrie struct {
	flatTrie // what StateDB does not call
	tries    *simulatedTries
	owner    common.Hash
	root     common.Hash // as of the last change that was made
	trie     *tries.Trie // nil before the first change
	slots    []simulatedSlot
}

// simulatedSlot is a change of a slot that is not made yet.
type simulatedSlot struct {
	key   common.Hash
	value []byte // as in the trie; empty: the slot is removed
}

// UpdateStorage implements state.Trie.
func (t *simulatedTrie) UpdateStorage(_ common.Address, slot, value []byte) error {
	encoded, err := rlp.EncodeToBytes(value)
	t.slots = append(t.slots, simulatedSlot{evm.HashSlot(common.BytesToHash(slot)), encoded})
	return err
}

// DeleteStorage implements state.Trie.
func (t *simulatedTrie) DeleteStorage(_ common.Address, slot []byte) error {
	t.slots = append(t.slots, simulatedSlot{key: evm.HashSlot(common.BytesToHash(slot))})
	return nil
}

// UpdateAccount implements state.Trie. It sets the storage root of the account.
func (t *simulatedTrie) UpdateAccount(address common.Address, account *types.StateAccount, _ int) error {
	key := evm.HashAddress(address)
	if storage := t.tries.take(key); storage != nil {
		if err := storage.change(t.tries.roots); err != nil {
			return t.fail(err)
		}
		account.Root = storage.root
	}
	encoded, err := rlp.EncodeToBytes(account)
	if err != nil {
		return t.fail(err)
	}
	return t.fail(t.opened(t.tries.roots).Put(key, encoded))
}

// fail has the simulation fail with an error, if it is one. StateDB keeps errors to itself.
func (t *simulatedTrie) fail(err error) error {
	if err != nil {
		t.tries.db.fail(err)
	}
	return err
}

// DeleteAccount implements state.Trie.
func (t *simulatedTrie) DeleteAccount(address common.Address) error {
	return t.fail(t.opened(t.tries.roots).Remove(evm.HashAddress(address)))
}

// Hash implements state.Trie. The root of a storage trie may be that before the last changes.
func (t *simulatedTrie) Hash() common.Hash {
	var err error
	switch {
	case t.owner == (common.Hash{}):
		t.root, err = t.opened(t.tries.roots).Hash()
	case t.tries.sideBySide:
		err = t.change(t.tries.newRoots())
	case len(t.slots) > 0:
		t.tries.note(t)
	}
	_ = t.fail(err)
	return t.root
}

// opened returns the trie, which is one of roots if it was not opened before.
func (t *simulatedTrie) opened(roots *tries.Roots) *tries.Trie {
	if t.trie == nil {
		t.trie = roots.Open(t.owner, t.root)
	}
	return t.trie
}

// change makes the changes of slots.
func (t *simulatedTrie) change(roots *tries.Roots) (err error) {
	trie := t.opened(roots)
	for i := range t.slots {
		if slot := &t.slots[i]; len(slot.value) > 0 {
			err = trie.Put(slot.key, slot.value)
		} else {
			err = trie.Remove(slot.key)
		}
		if err != nil {
			return err
		}
	}
	t.slots = t.slots[:0]
	t.root, err = trie.Hash()
	return err
}

// seenValues are the accounts and slots that a simulation has read of the state before it. They
// belong to one goroutine while they grow.
type seenValues struct {
	accounts map[common.Hash]*types.StateAccount // nil: there is none
	slots    map[slotPlace]common.Hash
}

// slotPlace names a slot by the hashes of its address and its key.
type slotPlace struct{ address, slot common.Hash }

func newSeenValues() *seenValues {
	return &seenValues{accounts: make(map[common.Hash]*types.StateAccount), slots: make(map[slotPlace]common.Hash)}
}

// before implements [tries.Before].
func (s *seenValues) before(owner, key common.Hash) []byte {
	if owner == (common.Hash{}) {
		return encodeAccount(s.accounts[key])
	}
	return encodeSlot(s.slots[slotPlace{owner, key}])
}
