package execute

import (
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// warmList holds the accounts and slots that a call or a transaction has touched, which cost less from
// then on (EIP-2929). go-ethereum's StateDB uses maps and a journal for it. Entries are
// reverted in the opposite order to that in which they were added, so a list that is
// truncated needs no journal. The list shares the slice of precompiles instead of copying
// some twenty addresses for a transaction that touches two or three.
type warmList struct {
	precompiles []common.Address
	addresses   lifoSet[common.Address]
	slots       lifoSet[warmSlot]
	marks       []warmMark // in ascending order
}

// warmLists are unused lists. A list from here needs not grow again.
var warmLists = sync.Pool{New: func() any { return new(warmList) }}

func newWarmList() *warmList { return warmLists.Get().(*warmList) }

// maxKeptWarm is the greatest capacity of a list that is kept. Emptying a larger one takes
// longer than most calls.
const maxKeptWarm = 512

// release returns the list to warmLists when its call or block is over.
func (w *warmList) release() {
	if max(cap(w.addresses.members), cap(w.slots.members), cap(w.marks)) <= maxKeptWarm {
		w.reset()
		warmLists.Put(w)
	}
}

func (w *warmList) reset() {
	w.precompiles = nil
	w.addresses.truncate(0)
	w.slots.truncate(0)
	w.marks = w.marks[:0]
}

type warmSlot struct {
	address common.Address
	slot    common.Hash
}

// warmMark is the length of the lists at a snapshot.
type warmMark struct{ snapshot, addresses, slots uint32 }

func (w *warmList) hasAddress(address common.Address) bool {
	return w.addresses.has(address) || slices.Contains(w.precompiles, address)
}

func (w *warmList) addAddress(address common.Address) {
	if !w.hasAddress(address) {
		w.addresses.add(address)
	}
}

// mark records the current lengths, for revert.
func (w *warmList) mark(snapshot int) {
	w.marks = append(w.marks, warmMark{uint32(snapshot), uint32(len(w.addresses.members)), uint32(len(w.slots.members))})
}

// revert truncates the lists to their lengths at a snapshot.
func (w *warmList) revert(snapshot int) {
	for i := len(w.marks) - 1; i >= 0; i-- {
		if m := w.marks[i]; m.snapshot == uint32(snapshot) {
			w.addresses.truncate(int(m.addresses))
			w.slots.truncate(int(m.slots))
			w.marks = w.marks[:i]
			return
		}
	}
}

// warmState is go-ethereum's state with a warmList in place of its own.
type warmState struct {
	*state.StateDB
	warm *warmList
}

// Prepare starts the list of a transaction.
func (s *warmState) Prepare(rules params.Rules, sender, coinbase common.Address, to *common.Address, precompiles []common.Address, list types.AccessList) {
	warm := s.warm
	warm.precompiles = precompiles
	warm.addresses.truncate(0)
	warm.slots.truncate(0)
	warm.marks = warm.marks[:0]
	warm.addAddress(sender)
	if to != nil {
		warm.addAddress(*to)
	}
	for _, tuple := range list {
		warm.addAddress(tuple.Address)
		for _, slot := range tuple.StorageKeys {
			warm.slots.add(warmSlot{tuple.Address, slot})
		}
	}
	if rules.IsShanghai { // EIP-3651
		warm.addAddress(coinbase)
	}
	rules.IsEIP2929 = false // StateDB keeps no list beside ours
	s.StateDB.Prepare(rules, sender, coinbase, to, nil, nil)
}

// Snapshot implements vm.StateDB.
func (s *warmState) Snapshot() int {
	snapshot := s.StateDB.Snapshot()
	s.warm.mark(snapshot)
	return snapshot
}

// RevertToSnapshot implements vm.StateDB.
func (s *warmState) RevertToSnapshot(snapshot int) {
	s.StateDB.RevertToSnapshot(snapshot)
	s.warm.revert(snapshot)
}

// AddressInAccessList implements vm.StateDB.
func (s *warmState) AddressInAccessList(address common.Address) bool {
	return s.warm.hasAddress(address)
}

// SlotInAccessList implements vm.StateDB.
func (s *warmState) SlotInAccessList(address common.Address, slot common.Hash) (bool, bool) {
	return s.warm.hasAddress(address), s.warm.slots.has(warmSlot{address, slot})
}

// AddAddressToAccessList implements vm.StateDB.
func (s *warmState) AddAddressToAccessList(address common.Address) { s.warm.addAddress(address) }

// AddSlotToAccessList implements vm.StateDB.
func (s *warmState) AddSlotToAccessList(address common.Address, slot common.Hash) {
	s.warm.addAddress(address)
	s.warm.slots.add(warmSlot{address, slot})
}

// lifoSet is a set whose members are removed in the opposite order to that in which they
// were added. The zero value is empty.
type lifoSet[K comparable] struct {
	members []K // in the order in which they were added
	// index has all members if there are more than fewMembers. Otherwise it is empty and
	// members are compared one by one: most calls have few, and a map of three takes more
	// than twice as long.
	index map[K]struct{}
}

// fewMembers is the size up to which a set needs no index.
const fewMembers = 8

func (s *lifoSet[K]) has(k K) bool {
	if len(s.index) == 0 {
		return slices.Contains(s.members, k)
	}
	_, ok := s.index[k]
	return ok
}

// add adds k if it is not there.
func (s *lifoSet[K]) add(k K) {
	if s.has(k) {
		return
	}
	s.members = append(s.members, k)
	switch {
	case len(s.index) > 0:
		s.index[k] = struct{}{}
	case len(s.members) > fewMembers:
		if s.index == nil {
			s.index = make(map[K]struct{})
		}
		for _, member := range s.members {
			s.index[member] = struct{}{}
		}
	}
}

// truncate removes all members but the first n.
func (s *lifoSet[K]) truncate(n int) {
	if n <= fewMembers {
		clear(s.index)
	} else {
		for _, member := range s.members[n:] {
			delete(s.index, member)
		}
	}
	s.members = s.members[:n]
}
