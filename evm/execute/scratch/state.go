// Package scratch is the state of a call whose changes are dropped with it, for the EVM.
//
// go-ethereum's [state.StateDB] keeps what it takes to compute a state root: for each account
// four maps of slots, and for each change an entry that says what has become dirty. A [State]
// keeps accounts and slots in two tables. The entry of a slot has its value, its original value
// and whether it is warm, so SLOAD looks it up once. Changes are undone by old values:
//
//	snapshot 0 | account 3: nonce 7 | slot 5: 0x2a | snapshot 2 | slot 5 was cold |
//
// Tables and changes are kept from one call to the next, so a short call allocates hardly any
// memory. Tests compare a State with a StateDB.
package scratch

import (
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// Reader reads the state before the call. It reports errors to its owner as well: after one, the
// account or value reads as absent, and the answers of the State must not be used.
type Reader interface {
	Account(address common.Address) (*types.StateAccount, error) // nil: absent
	Storage(address common.Address, slot common.Hash) (common.Hash, error)
	Code(address common.Address, hash common.Hash) []byte
	CodeSize(address common.Address, hash common.Hash) int
	// Grow is called before the State keeps an entry, which takes so many bytes until Release. If it
	// returns false, the State keeps no more entries, and its answers must not be used either.
	Grow(bytes int) bool
}

// Bytes that an entry takes in its table, measured and rounded up. Rows and index grow by
// copying themselves.
const (
	accountBytes = 224 // besides what the Reader has read
	slotBytes    = 384
)

// State implements [vm.StateDB] for messages after which the state is dropped or reverted. It
// belongs to one goroutine, and is released after use. It keeps neither logs nor a block access
// list.
type State struct {
	reader   Reader
	accounts table[common.Address, account]
	slots    table[place, slot]
	journal  journal
	refund   uint64

	transient   map[place]common.Hash // nil before the first write
	precompiles []common.Address      // always warm
	run         uint32                // 1, and one more with each transaction; see account.warm
}

var _ vm.StateDB = (*State)(nil)

// place names a slot of an account.
type place struct {
	address common.Address
	slot    common.Hash
}

// maxKept is the greatest number of accounts, slots or changes whose memory is kept. Emptying
// larger tables takes longer than most calls.
const maxKept = 512

// states are released States.
var states = sync.Pool{New: func() any { return new(State) }}

// New returns the state that reader reads.
func New(reader Reader) *State {
	s := states.Get().(*State)
	s.reader, s.run = reader, 1
	return s
}

// Release ends the use of the state.
func (s *State) Release() {
	if max(cap(s.accounts.rows), cap(s.slots.rows), cap(s.journal.changes)) > maxKept {
		return
	}
	s.accounts.reset()
	s.slots.reset()
	s.journal.reset()
	*s = State{accounts: s.accounts, slots: s.slots, journal: s.journal}
	states.Put(s)
}
