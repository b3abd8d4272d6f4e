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
	changed := make(map[common.Hash]bool) // accounts, which change with their slots
	for address, k := range changes.Accounts {
		if !k.Back {
			changed[address] = true
		}
	}
	var slots []evm.SlotPlace
	for at, k := range changes.Slots {
		if !k.Back {
			changed[at.Address] = true
			slots = append(slots, at)
		}
	}
	m := keyMarks{width: 2, count: make(map[uint32]int, len(changed)+len(slots))}
	if len(changed)+len(slots) >= manyKeys {
		m.width = 3
	}
	for address := range changed {
		m.count[markOf(address, nil, m.width)]++
	}
	for _, at := range slots {
		m.count[markOf(at.Address, &at.Slot, m.width)]++
	}
	return m
}

// changedKey is a key that step 0 or a transaction has changed.
type changedKey struct {
	mark   uint32
	name   []byte
	named  bool // the mark does not tell it apart, or it has no row, as the block has changed it back
	encode func(dst []byte, named bool) []byte
}

// keys returns the keys that step 0 or transactions have changed.
func (m keyMarks) keys(changes *evm.Changes) (keys []changedKey) {
	add := func(address common.Hash, slot *common.Hash, first int, back bool, encode func(dst []byte, named bool) []byte) {
		if first > changes.Transactions {
			return
		}
		mark := markOf(address, slot, m.width)
		keys = append(keys, changedKey{mark, nameOf(address, slot), back || m.count[mark] > 1, encode})
	}
	for address, k := range changes.Accounts {
		add(address, nil, k.Values[0].Step, k.Back, func(dst []byte, named bool) []byte {
			return appendKeyChanges(dst, k, changes.Transactions, named, appendChangedAccount)
		})
	}
	for at, k := range changes.Slots {
		add(at.Address, &at.Slot, k.Values[0].Step, k.Back, func(dst []byte, named bool) []byte {
			return appendKeyChanges(dst, k, changes.Transactions, named, appendChangedSlot)
		})
	}
	slices.SortFunc(keys, func(a, b changedKey) int { return cmp.Or(cmp.Compare(a.mark, b.mark), bytes.Compare(a.name, b.name)) })
	return keys
}

// encodeChanges returns a row of transaction_changes.
func encodeChanges(changes *evm.Changes) []byte {
	marks := newKeyMarks(changes)
	var marked, named []changedKey
	for _, key := range marks.keys(changes) {
		if key.named {
			named = append(named, key)
		} else {
			marked = append(marked, key)
		}
	}
	row := binary.AppendUvarint([]byte{byte(marks.width)}, uint64(len(marked)))
	for _, key := range marked {
		mark := binary.BigEndian.AppendUint32(nil, key.mark)
		row = append(row, mark[len(mark)-marks.width:]...)
	}
	for _, key := range marked {
		row = key.encode(row, false)
	}
	row = binary.AppendUvarint(row, uint64(len(named)))
	for _, key := range named {
		row = append(append(row, byte(len(key.name))), key.name...)
		row = key.encode(row, true)
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
