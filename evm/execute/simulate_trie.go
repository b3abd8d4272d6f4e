package execute

import (
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
// grow its stack several times on the way into the store, and starting one for each changed account takes
// longer than hashing its storage. Only for a trie that all accounts and slots are in does StateDB do
// without them, so [stateDatabase.Type] says that there is one. All changes are noted, and made together:
//
//	UpdateStorage, UpdateAccount, DeleteAccount   noted
//	Hash                                          storage tries are changed and hashed, account.Root is set,
//	                                              and then the account trie is changed and hashed
//
// Where a read takes a round trip, waiting side by side is worth more.
type simulatedTries struct {
	db         *stateDatabase
	seen       *seenValues
	sideBySide bool         // each storage trie is changed in the goroutine that asks for its root
	roots      *tries.Roots // of the goroutine that simulates
	opened     bool         // StateDB has the account trie
}

func newSimulatedTries(d *stateDatabase, sideBySide bool) *simulatedTries {
	s := &simulatedTries{db: d, seen: newSeenValues(), sideBySide: sideBySide}
	s.roots = s.newRoots()
	return s
}

func (s *simulatedTries) newRoots() *tries.Roots {
	return tries.NewRoots(s.db.nodes().Node, s.seen.before)
}

// joined reports whether StateDB is to change the storage of accounts by means of the account trie. While it
// has not opened that trie it is not: it would also record what a unified trie charges for.
func (s *simulatedTries) joined() bool { return s.opened && !s.sideBySide }

// open returns the account trie with a root.
func (s *simulatedTries) open(root common.Hash) *simulatedTrie {
	s.opened = true
	return &simulatedTrie{tries: s, accounts: s.roots.Open(common.Hash{}, root), storage: make(map[common.Hash]*simulatedStorage)}
}

// openStorage returns the storage trie of an owner for a goroutine that asks for its root.
func (s *simulatedTries) openStorage(owner, root common.Hash) *simulatedStorage {
	return &simulatedStorage{tries: s, owner: owner, root: root, trie: s.newRoots().Open(owner, root)}
}

// fail has the simulation fail with an error, if it is one: state.Trie.Hash returns none.
func (s *simulatedTries) fail(err error) {
	if err != nil {
		s.db.fail(err)
	}
}

// simulatedTrie is the account trie. Unless storage tries are changed side by side, it has these as well.
type simulatedTrie struct {
	flatTrie // what StateDB does not call
	tries    *simulatedTries
	accounts *tries.Trie
	storage  map[common.Hash]*simulatedStorage // by owner

	changed []changedAccount // since the last call of Hash
	removed []common.Hash    // the same
}

// changedAccount is an account that has changed, as StateDB has it.
type changedAccount struct {
	key common.Hash
	*types.StateAccount
}

// UpdateStorage implements state.Trie.
func (t *simulatedTrie) UpdateStorage(address common.Address, slot, value []byte) error {
	return t.storageOf(address).UpdateStorage(address, slot, value)
}

// DeleteStorage implements state.Trie.
func (t *simulatedTrie) DeleteStorage(address common.Address, slot []byte) error {
	return t.storageOf(address).DeleteStorage(address, slot)
}

// storageOf returns the storage of an account, whose trie may not be open yet.
func (t *simulatedTrie) storageOf(address common.Address) *simulatedStorage {
	owner := evm.HashAddress(address)
	storage := t.storage[owner]
	if storage == nil {
		storage = &simulatedStorage{tries: t.tries, owner: owner}
		t.storage[owner] = storage
	}
	return storage
}

// UpdateAccount implements state.Trie. Hash sets the storage root of the account.
func (t *simulatedTrie) UpdateAccount(address common.Address, account *types.StateAccount, _ int) error {
	t.changed = append(t.changed, changedAccount{evm.HashAddress(address), account})
	return nil
}

// DeleteAccount implements state.Trie.
func (t *simulatedTrie) DeleteAccount(address common.Address) error {
	t.removed = append(t.removed, evm.HashAddress(address))
	return nil
}

// Hash implements state.Trie. After an error the root is wrong, and the simulation fails.
func (t *simulatedTrie) Hash() common.Hash {
	t.tries.fail(t.change())
	return t.accounts.Root()
}

// change makes the changes that were noted. Removals come last, as they do in [tries.Tries].
func (t *simulatedTrie) change() error {
	if err := t.changeStorage(); err != nil {
		return err
	}
	for _, account := range t.changed {
		encoded, err := rlp.EncodeToBytes(account.StateAccount)
		if err != nil {
			return err
		}
		if err := t.accounts.Put(account.key, encoded); err != nil {
			return err
		}
	}
	for _, key := range t.removed {
		if err := t.accounts.Remove(key); err != nil {
			return err
		}
	}
	clear(t.changed)
	t.changed, t.removed = t.changed[:0], t.removed[:0]
	return t.tries.roots.Hash(t.accounts)
}

// changeStorage changes the storage of the accounts that have changed, and sets their storage roots.
func (t *simulatedTrie) changeStorage() error {
	var hashed []*tries.Trie
	for _, account := range t.changed {
		storage := t.storage[account.key]
		if storage == nil || len(storage.slots) == 0 {
			continue
		}
		if storage.trie == nil || storage.root != account.Root { // the latter if the account was created anew
			storage.trie = t.tries.roots.Open(account.key, account.Root)
		}
		if err := storage.change(); err != nil {
			return err
		}
		hashed = append(hashed, storage.trie)
	}
	if err := t.tries.roots.Hash(hashed...); err != nil {
		return err
	}
	for _, account := range t.changed {
		if storage := t.storage[account.key]; storage != nil && storage.changed {
			storage.root, storage.changed = storage.trie.Root(), false
			account.Root = storage.root
		}
	}
	return nil
}

// simulatedStorage is the storage trie of an account. It belongs to one goroutine at a time.
type simulatedStorage struct {
	flatTrie // what StateDB does not call
	tries    *simulatedTries
	owner    common.Hash
	trie     *tries.Trie
	root     common.Hash // of trie, as it was hashed last
	slots    []simulatedSlot
	changed  bool // since then
}

// simulatedSlot is a change of a slot that is not made yet.
type simulatedSlot struct {
	key   common.Hash
	value []byte // as in the trie; empty: the slot is removed
}

// UpdateStorage implements state.Trie.
func (t *simulatedStorage) UpdateStorage(_ common.Address, slot, value []byte) error {
	encoded, err := rlp.EncodeToBytes(value)
	t.slots = append(t.slots, simulatedSlot{evm.HashSlot(common.BytesToHash(slot)), encoded})
	return err
}

// DeleteStorage implements state.Trie.
func (t *simulatedStorage) DeleteStorage(_ common.Address, slot []byte) error {
	t.slots = append(t.slots, simulatedSlot{key: evm.HashSlot(common.BytesToHash(slot))})
	return nil
}

// Hash implements state.Trie, for a storage trie that is changed side by side with others.
func (t *simulatedStorage) Hash() common.Hash {
	err := t.change()
	if err == nil {
		t.root, err = t.trie.Hash()
	}
	t.tries.fail(err)
	return t.root
}

// change makes the changes of slots. Removals come last, as they do in [tries.Tries].
func (t *simulatedStorage) change() error {
	for _, slot := range t.slots {
		if len(slot.value) > 0 {
			if err := t.trie.Put(slot.key, slot.value); err != nil {
				return err
			}
		}
	}
	for _, slot := range t.slots {
		if len(slot.value) == 0 {
			if err := t.trie.Remove(slot.key); err != nil {
				return err
			}
		}
	}
	t.slots, t.changed = t.slots[:0], true
	return nil
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
