package execute

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// warmList holds what a call has touched and so gets at the lower price from
// then on (EIP-2929). It does what go-ethereum's StateDB does with maps and a
// journal of their changes, but what comes last goes first, which is all the
// journal there needs to be; and it takes the precompiles as they are, instead
// of copying some twenty addresses for a call that touches two or three.
type warmList struct {
	precompiles []common.Address
	addresses   lifoSet[common.Address]
	slots       lifoSet[warmSlot]
	marks       []warmMark // in ascending order
}

// warmLists are lists that calls are done with: what one has grown to the next need not.
var warmLists = sync.Pool{New: func() any { return new(warmList) }}

// maxKeptWarm is for how many of anything a list that is kept may have room. One that is
// larger takes longer to empty than most calls take.
const maxKeptWarm = 512

// release gives a list back, whose call is over.
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

// warmMark is how much was in the list at a snapshot.
type warmMark struct{ snapshot, addresses, slots uint32 }

func (w *warmList) hasAddress(address common.Address) bool {
	return w.addresses.has(address) || slices.Contains(w.precompiles, address)
}

func (w *warmList) addAddress(address common.Address) {
	if !w.hasAddress(address) {
		w.addresses.add(address)
	}
}

// mark remembers what is in the list now, for revert.
func (w *warmList) mark(snapshot int) {
	w.marks = append(w.marks, warmMark{uint32(snapshot), uint32(len(w.addresses.members)), uint32(len(w.slots.members))})
}

// revert returns to what was in the list at a snapshot.
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

// Prepare begins the list of a transaction.
func (s *callState) Prepare(rules params.Rules, sender, coinbase common.Address, to *common.Address, precompiles []common.Address, list types.AccessList) {
	warm := s.warm
	warm.precompiles = precompiles
	warm.addresses.truncate(0)
	warm.slots.truncate(0)
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
	rules.IsEIP2929 = false   // that was it
	rules.IsAmsterdam = false // nobody reads the block access list of a call
	s.StateDB.Prepare(rules, sender, coinbase, to, nil, nil)
}

func (s *callState) AddressInAccessList(address common.Address) bool {
	return s.warm.hasAddress(address)
}

func (s *callState) SlotInAccessList(address common.Address, slot common.Hash) (bool, bool) {
	return s.warm.hasAddress(address), s.warm.slots.has(warmSlot{address, slot})
}

func (s *callState) AddAddressToAccessList(address common.Address) { s.warm.addAddress(address) }

func (s *callState) AddSlotToAccessList(address common.Address, slot common.Hash) {
	s.warm.addAddress(address)
	s.warm.slots.add(warmSlot{address, slot})
}

// lifoSet is a set whose members leave it in the opposite order to that in which
// they came. The zero value is empty.
type lifoSet[K comparable] struct {
	members []K // in the order in which they came
	// places is a hash table with open addresses: one more than the place in
	// members, 0 where there is none. It is nil, and members are compared one by
	// one, until there are more than a few.
	places []uint32
	seed   maphash.Seed
}

// fewMembers need no table.
const fewMembers = 8

func (s *lifoSet[K]) has(k K) bool {
	if s.places == nil {
		return slices.Contains(s.members, k)
	}
	return s.places[s.place(k)] != 0
}

// add adds k if it is not there.
func (s *lifoSet[K]) add(k K) {
	if s.places == nil && len(s.members) < fewMembers {
		if !slices.Contains(s.members, k) {
			s.members = append(s.members, k)
		}
		return
	}
	if 2*len(s.members) >= len(s.places) {
		s.grow()
	}
	if place := s.place(k); s.places[place] == 0 {
		s.members = append(s.members, k)
		s.places[place] = uint32(len(s.members))
	}
}

// truncate lets go of all members but the first n.
func (s *lifoSet[K]) truncate(n int) {
	if n == 0 && len(s.members) > 0 {
		clear(s.places)
		s.members = s.members[:0]
	}
	for i := len(s.members) - 1; i >= n; i-- {
		if s.places != nil {
			// Whatever came later, and may have passed this place by, is gone.
			s.places[s.place(s.members[i])] = 0
		}
		s.members = s.members[:i]
	}
}

// place is where k is in the table, or would be.
func (s *lifoSet[K]) place(k K) uint64 {
	mask := uint64(len(s.places) - 1)
	place := maphash.Comparable(s.seed, k) & mask
	for s.places[place] != 0 && s.members[s.places[place]-1] != k {
		place = (place + 1) & mask
	}
	return place
}

// grow makes the table anew, with room for more.
func (s *lifoSet[K]) grow() {
	if s.places == nil {
		s.seed = maphash.MakeSeed()
	}
	s.places = make([]uint32, max(4*fewMembers, 2*len(s.places)))
	for i, k := range s.members {
		s.places[s.place(k)] = uint32(i + 1)
	}
}
