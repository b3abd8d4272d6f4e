package scratch

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// kind is what a change has changed.
type kind uint8

const (
	accountValue kind = iota
	accountWarmth
	slotValue
	slotWarmth
	transientValue
	refundCounter
)

// change undoes a change.
type change struct {
	value common.Hash // before: of the slot, or the refund counter in its first bytes
	row   uint32      // of the account or slot in its table
	kind  kind
}

// journal is a stack of changes. Old values that are too large for it are in stacks beside it.
type journal struct {
	changes    []change
	accounts   []account   // one for each accountValue
	transients []transient // one for each transientValue
}

type transient struct {
	place place
	value common.Hash
}

func (j *journal) keepAccount(row int, a *account) {
	j.accounts = append(j.accounts, *a)
	j.changes = append(j.changes, change{kind: accountValue, row: uint32(row)})
}

func (j *journal) keepSlot(row int, value common.Hash) {
	j.changes = append(j.changes, change{kind: slotValue, row: uint32(row), value: value})
}

func (j *journal) keepCold(kind kind, row int) {
	j.changes = append(j.changes, change{kind: kind, row: uint32(row)})
}

func (j *journal) keepTransient(p place, value common.Hash) {
	j.transients = append(j.transients, transient{p, value})
	j.changes = append(j.changes, change{kind: transientValue})
}

func (j *journal) keepRefund(gas uint64) {
	c := change{kind: refundCounter}
	binary.LittleEndian.PutUint64(c.value[:], gas)
	j.changes = append(j.changes, c)
}

// reset forgets all changes, and refers to nothing that they have kept.
func (j *journal) reset() {
	clear(j.accounts[:cap(j.accounts)])
	j.changes, j.accounts, j.transients = j.changes[:0], j.accounts[:0], j.transients[:0]
}

// Snapshot implements vm.StateDB. It returns the number of changes so far.
func (s *State) Snapshot() int { return len(s.journal.changes) }

// RevertToSnapshot implements vm.StateDB.
func (s *State) RevertToSnapshot(snapshot int) {
	j := &s.journal
	for _, c := range slices.Backward(j.changes[snapshot:]) {
		s.undo(c)
	}
	j.changes = j.changes[:snapshot]
}

func (s *State) undo(c change) {
	switch c.kind {
	case accountValue:
		a := &s.accounts.rows[c.row].value
		code, hash := a.code, a.codeHash
		*a = pop(&s.journal.accounts)
		if a.unread() && a.codeHash == hash {
			a.code = code // perhaps read since; to read it again would take time, and count twice
		}
	case accountWarmth:
		s.accounts.rows[c.row].value.warm = 0
	case slotValue:
		s.slots.rows[c.row].value.value = c.value
	case slotWarmth:
		s.slots.rows[c.row].value.warm = 0
	case transientValue:
		before := pop(&s.journal.transients)
		s.transient[before.place] = before.value
	case refundCounter:
		s.refund = binary.LittleEndian.Uint64(c.value[:])
	}
}

func pop[T any](stack *[]T) T {
	last := len(*stack) - 1
	top := (*stack)[last]
	*stack = (*stack)[:last]
	return top
}
