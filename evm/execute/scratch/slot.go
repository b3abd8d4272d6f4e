package scratch

import "github.com/ethereum/go-ethereum/common"

// slot is the entry of a slot.
type slot struct {
	read   bool // value and origin are known
	value  common.Hash
	origin common.Hash // at the beginning of the transaction
	warm   uint32      // as in account
}

// slotEntry returns the entry of a slot. The pointer is valid until the next slot is looked up.
func (s *State) slotEntry(p place) (v *slot, row int) {
	row, ok := s.slots.find(p)
	if !ok {
		row = s.slots.add(p, s.reader.Grow(slotBytes))
	}
	return &s.slots.rows[row].value, row
}

// slot is slotEntry, with the slot read if its account exists.
func (s *State) slot(p place) (v *slot, row int) {
	v, row = s.slotEntry(p)
	if v.read {
		return v, row
	}
	a, _ := s.account(p.address)
	if !a.exists {
		return v, row
	}
	v.read = true
	if !a.cleared {
		if value, err := s.reader.Storage(p.address, p.slot); err == nil {
			v.value, v.origin = value, value
		}
	}
	return v, row
}

// GetState implements vm.StateDB.
func (s *State) GetState(address common.Address, key common.Hash) common.Hash {
	v, _ := s.slot(place{address, key})
	return v.value
}

// GetStateAndCommittedState implements vm.StateDB.
func (s *State) GetStateAndCommittedState(address common.Address, key common.Hash) (value, origin common.Hash) {
	v, _ := s.slot(place{address, key})
	return v.value, v.origin
}

// SetState implements vm.StateDB.
func (s *State) SetState(address common.Address, key, value common.Hash) common.Hash {
	if !s.Exist(address) {
		s.CreateAccount(address)
	}
	v, row := s.slot(place{address, key})
	before := v.value
	if before != value {
		s.journal.keepSlot(row, before)
		v.value = value
	}
	return before
}

// SetStorage replaces the whole storage of an account. It is for overrides, and is not reverted.
func (s *State) SetStorage(address common.Address, storage map[common.Hash]common.Hash) {
	s.change(address).cleared = true
	for row := range s.slots.rows {
		if r := &s.slots.rows[row]; r.key.address == address {
			r.value = slot{read: true, warm: r.value.warm}
		}
	}
	for key, value := range storage {
		s.SetState(address, key, value)
	}
}

// GetTransientState implements vm.StateDB.
func (s *State) GetTransientState(address common.Address, key common.Hash) common.Hash {
	return s.transient[place{address, key}]
}

// SetTransientState implements vm.StateDB.
func (s *State) SetTransientState(address common.Address, key, value common.Hash) {
	p := place{address, key}
	before := s.transient[p]
	if before == value {
		return
	}
	if s.transient == nil {
		s.transient = make(map[place]common.Hash)
	}
	s.journal.keepTransient(p, before)
	s.transient[p] = value
}
