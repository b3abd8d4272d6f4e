package archive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A row of transaction_changes says which steps of a block changed an account or a slot, and has no value that the state
// has: a key has its value before the block until its first change, and that after the block, nearly always, from its last one
// on. Nor does the row name keys: each key that a block has changed has a row of its own with the number of the block, and a
// few bytes of its name, the mark, tell these keys apart. docs/format.md draws the row.

// manyKeys is the number of changed keys from which marks of three bytes take less space than marks of two bytes: of n keys, one in
// 65,536/n has the same mark of two bytes as another one, and is stored with its name, which takes some 40 bytes.
const manyKeys = 1600

// Flags of the number that the changes of a key begin with, below the first step.
const (
	changesWhole    = 1 << iota // the value after the last change is there, too
	changesMore                 // the count of further changes follows
	changesFlagBits = iota
)

// Flags of an account's value in transaction_changes. An absent account is no bytes.
const (
	changedHasStorage = accountHasStorage // the storage root does not follow
	changedHasCode    = accountHasCode    // the hash follows
	changedSameCode   = 1 << 2            // the code is the one after the block
)

// nameOf returns the name of a key: the partition of its rows in the table of accounts, if slot is nil, or of slots.
func nameOf(address common.Hash, slot *common.Hash) []byte {
	if slot == nil {
		return bytes.Clone(address[:])
	}
	return appendSlotKey(nil, address, *slot)
}

// markOf returns the mark of a key: the first bytes of an address, or of the difference of an address and a slot.
func markOf(address common.Hash, slot *common.Hash, width int) (mark uint32) {
	for i := range width {
		b := address[i]
		if slot != nil {
			b ^= slot[i]
		}
		mark = mark<<8 | uint32(b)
	}
	return mark
}

// keyMarks counts, by mark, the keys that have a row with a block's number.
type keyMarks struct {
	width int // bytes of a mark
	count map[uint32]int
}

func newKeyMarks(changes *evm.Changes) keyMarks {
	changed := make(map[common.Hash]struct{}, len(changes.Accounts)) // accounts, which change with their slots
	for i := range changes.Accounts {
		if k := &changes.Accounts[i]; !k.Back {
			changed[k.Address] = struct{}{}
		}
	}
	slots := 0
	for i := range changes.Slots {
		if k := &changes.Slots[i]; !k.Back {
			changed[k.Address] = struct{}{}
			slots++
		}
	}
	m := keyMarks{width: 2, count: make(map[uint32]int, len(changed)+slots)}
	if len(changed)+slots >= manyKeys {
		m.width = 3
	}
	for address := range changed {
		m.count[markOf(address, nil, m.width)]++
	}
	for i := range changes.Slots {
		if k := &changes.Slots[i]; !k.Back {
			m.count[markOf(k.Address, &k.Slot, m.width)]++
		}
	}
	return m
}

// changedKey is a key that step 0 or a transaction has changed: an account or a slot.
type changedKey struct {
	mark    uint32
	named   bool // the mark does not tell it apart, or it has no row, as the block has changed it back
	account *evm.AccountChanges
	slot    *evm.SlotChanges
}

func (k changedKey) name() []byte {
	if k.account != nil {
		return nameOf(k.account.Address, nil)
	}
	return nameOf(k.slot.Address, &k.slot.Slot)
}

// compare orders keys by their marks, and by their names if these are the same.
func (k changedKey) compare(other changedKey) int {
	if k.mark != other.mark {
		return cmp.Compare(k.mark, other.mark)
	}
	return bytes.Compare(k.name(), other.name())
}

// encode appends the changes of the key up to those of the last of a block's transactions.
func (k changedKey) encode(dst []byte, transactions int) []byte {
	if k.account != nil {
		return appendKeyChanges(dst, &k.account.KeyChanges, transactions, k.named, appendChangedAccount)
	}
	return appendKeyChanges(dst, &k.slot.KeyChanges, transactions, k.named, appendChangedSlot)
}

// keys returns the keys that step 0 or transactions have changed: those that their marks tell apart, and the others.
func (m keyMarks) keys(changes *evm.Changes) (marked, named []changedKey) {
	marked = make([]changedKey, 0, len(changes.Accounts)+len(changes.Slots))
	add := func(k changedKey, first int, back bool) {
		switch k.named = back || m.count[k.mark] > 1; {
		case first > changes.Transactions:
		case k.named:
			named = append(named, k)
		default:
			marked = append(marked, k)
		}
	}
	for i := range changes.Accounts {
		k := &changes.Accounts[i]
		add(changedKey{mark: markOf(k.Address, nil, m.width), account: k}, k.Values[0].Step, k.Back)
	}
	for i := range changes.Slots {
		k := &changes.Slots[i]
		add(changedKey{mark: markOf(k.Address, &k.Slot, m.width), slot: k}, k.Values[0].Step, k.Back)
	}
	slices.SortFunc(marked, changedKey.compare)
	slices.SortFunc(named, changedKey.compare)
	return marked, named
}

// encodeChanges returns a row of transaction_changes.
func encodeChanges(changes *evm.Changes) []byte {
	marks := newKeyMarks(changes)
	marked, named := marks.keys(changes)
	const usual = 6 // bytes of a key
	row := append(make([]byte, 0, usual*(len(marked)+len(named))), byte(marks.width))
	row = binary.AppendUvarint(row, uint64(len(marked)))
	for _, key := range marked {
		for shift := 8 * (marks.width - 1); shift >= 0; shift -= 8 {
			row = append(row, byte(key.mark>>shift))
		}
	}
	for _, key := range marked {
		row = key.encode(row, changes.Transactions)
	}
	row = binary.AppendUvarint(row, uint64(len(named)))
	for _, key := range named {
		name := key.name()
		row = append(append(row, byte(len(name))), name...)
		row = key.encode(row, changes.Transactions)
	}
	for _, hash := range slices.SortedFunc(maps.Keys(changes.Codes), common.Hash.Cmp) {
		row = append(binary.AppendUvarint(row, uint64(len(changes.Codes[hash]))), changes.Codes[hash]...)
	}
	return row
}

// appendKeyChanges appends the changes of a key up to a step, that of the last transaction. appendValue appends a value, given
// that after the block, and whether the key is named, so that the reader does not have that.
func appendKeyChanges[V comparable](dst []byte, k *evm.KeyChanges[V], last int, named bool, appendValue func(dst []byte, value, after *V, named bool) []byte) []byte {
	values := k.Values
	for values[len(values)-1].Step > last {
		values = values[:len(values)-1]
	}
	after := &k.Values[len(k.Values)-1].Value
	whole := named || values[len(values)-1].Value != *after
	head := uint64(values[0].Step) << changesFlagBits
	if whole {
		head |= changesWhole
	}
	if len(values) > 1 {
		head |= changesMore
	}
	dst = binary.AppendUvarint(dst, head)
	if len(values) > 1 {
		dst = binary.AppendUvarint(dst, uint64(len(values)-1))
	}
	for i := range values {
		if i > 0 {
			dst = binary.AppendUvarint(dst, uint64(values[i].Step-values[i-1].Step))
		}
		if i < len(values)-1 || whole {
			start := len(dst)
			dst = appendValue(append(dst, 0), &values[i].Value, after, named)
			dst[start] = byte(len(dst) - start - 1)
		}
	}
	return dst
}

func appendChangedSlot(dst []byte, value, _ *common.Hash, _ bool) []byte {
	return append(dst, common.TrimLeftZeroes(value[:])...)
}

func appendChangedAccount(dst []byte, account, after *evm.Account, named bool) []byte {
	if !account.Exists {
		return dst
	}
	var flags byte
	if account.HasStorage {
		flags |= changedHasStorage
	}
	switch {
	case account.CodeHash == types.EmptyCodeHash:
	case account.CodeHash == after.CodeHash && !named:
		flags |= changedSameCode
	default:
		flags |= changedHasCode
	}
	dst = appendBalance(binary.AppendUvarint(append(dst, flags), account.Nonce), &account.Balance)
	if flags&changedHasCode != 0 {
		dst = append(dst, account.CodeHash[:]...)
	}
	return dst
}
