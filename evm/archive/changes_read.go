package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Changes are what the transactions of a block have changed. They are safe for concurrent use.
type Changes struct {
	after  State  // after the block
	width  int    // bytes of a mark
	marks  []byte // ascending
	values []keyChanges
	named  map[string]keyChanges
	codes  map[common.Hash][]byte
}

// Changes returns what the transactions of a block have changed, or nil if that is not stored. It is stored for blocks
// from Byzantium on and before Amsterdam in archives with a trace index, but not in those that older versions created, and not
// if a block destroys an account with slots.
func (h *History) Changes(ctx context.Context, number uint64) (*Changes, error) {
	if !h.form.changes || !h.Stores(number) || h.CheckTraces(number) != nil { // a window removes the row after the state
		return nil, nil
	}
	row, err := rows.OfBlock(ctx, h.ofBlock(number), txChanges, number, nil)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	changes, err := decodeChanges(row)
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", number, err)
	}
	changes.after = h.StateAt(number)
	return changes, nil
}

// decodeChanges decodes a row of transaction_changes. It refers to the row.
func decodeChanges(row []byte) (*Changes, error) {
	d := rows.Decode(row)
	c := &Changes{width: int(d.Byte())}
	if c.width != 2 && c.width != 3 {
		return nil, fmt.Errorf("%w: %s row: marks of %d bytes (want 2 or 3)", ErrCorrupt, txChanges.Name, c.width)
	}
	n := d.Count(c.width + 1)
	c.marks = d.Take(uint64(n * c.width))
	c.values = make([]keyChanges, n)
	for i := range c.values {
		c.values[i] = takeChanges(&d)
	}
	const leastNamed = 1 + common.HashLength + 2
	if named := d.Count(leastNamed); named > 0 {
		c.named = make(map[string]keyChanges, named)
		for range named {
			name := d.Take(uint64(d.Byte()))
			changes := takeChanges(&d)
			if !changes.whole() {
				return nil, fmt.Errorf("%w: %s row: the key %x lacks its last value", ErrCorrupt, txChanges.Name, name)
			}
			c.named[string(name)] = changes
		}
	}
	for d.Left() > 0 {
		if c.codes == nil {
			c.codes = make(map[common.Hash][]byte)
		}
		code := d.UvarintBytes()
		c.codes[crypto.Keccak256Hash(code)] = code
	}
	for i := 1; i < n && !d.Failed(); i++ {
		if c.mark(i-1) >= c.mark(i) {
			return nil, fmt.Errorf("%w: %s row: mark %d is not above the one before", ErrCorrupt, txChanges.Name, i)
		}
	}
	return c, d.End(txChanges.Name)
}

// keyChanges are the changes of a key, encoded.
type keyChanges []byte

// takeChanges reads the changes of a key.
func takeChanges(d *rows.Decoder) keyChanges {
	all := d.Rest()
	rest := rows.Decode(all)
	walk := walkChanges(&rest)
	for walk.next() {
	}
	changes := all[:len(all)-rest.Left()]
	*d = rest
	return changes
}

// whole reports whether the value after the last change is there.
func (k keyChanges) whole() bool {
	head, _ := binary.Uvarint(k)
	return head&changesWhole != 0
}

// changeWalk goes through the changes of a key.
type changeWalk struct {
	d     *rows.Decoder
	whole bool
	left  uint64 // changes that follow
	begun bool

	// Of the current change:
	step   uint64
	stored bool   // value is the one after the step; if not, it is that after the block
	value  []byte // if stored
}

func walkChanges(d *rows.Decoder) changeWalk {
	head := d.Uvarint()
	w := changeWalk{d: d, whole: head&changesWhole != 0, left: 1, step: head >> changesFlagBits}
	if head&changesMore != 0 {
		w.left += uint64(d.Count(1)) // each takes a byte or more
	}
	return w
}

// next goes to the next change, the first at first. It returns false after the last one, or if a change is invalid.
func (w *changeWalk) next() bool {
	if w.left == 0 || w.d.Failed() {
		return false
	}
	if w.begun {
		w.step += w.d.Uvarint()
	}
	w.begun = true
	w.left--
	w.value, w.stored = nil, w.left > 0 || w.whole
	if w.stored {
		w.value = w.d.Take(uint64(w.d.Byte()))
	}
	return !w.d.Failed()
}

// keyState is what a key is after a step of a block.
type keyState struct {
	changed bool   // by this step or an earlier one; if not, it is as before the block
	stored  bool   // value is known; if not, it is that after the block
	value   []byte // if stored
	named   bool   // the key was found by its name, not by its mark, which another key may have that the block has not changed
}

// after returns what the key is after a step.
func (k keyChanges) after(step int) (state keyState) {
	d := rows.Decode(k)
	walk := walkChanges(&d)
	for walk.next() && walk.step <= uint64(step) {
		state = keyState{changed: true, stored: walk.stored, value: walk.value}
	}
	return state
}

// find returns what a key is after a step.
func (c *Changes) find(address common.Hash, slot *common.Hash, step int) keyState {
	if c.named != nil {
		if changes, ok := c.named[string(nameOf(address, slot))]; ok {
			state := changes.after(step)
			state.named = true
			return state
		}
	}
	mark := markOf(address, slot, c.width)
	i := sort.Search(len(c.values), func(i int) bool { return c.mark(i) >= mark })
	if i == len(c.values) || c.mark(i) != mark {
		return keyState{}
	}
	return c.values[i].after(step)
}

// mark returns the i-th mark.
func (c *Changes) mark(i int) (mark uint32) {
	for _, b := range c.marks[i*c.width : (i+1)*c.width] {
		mark = mark<<8 | uint32(b)
	}
	return mark
}

// Account returns an account after a step of the block, at most that of its last transaction (see [evm.Changes]). changed is
// false if no step until then has changed it: then it is as before the block.
func (c *Changes) Account(ctx context.Context, address common.Hash, step int) (account *types.StateAccount, changed bool, err error) {
	found := c.find(address, nil, step)
	if !found.changed {
		return nil, false, nil
	}
	var after *types.StateAccount
	if !found.named {
		row, changed, err := c.after.changedHere(ctx, accounts, address[:])
		if !changed || err != nil {
			return nil, false, err
		}
		if after, err = DecodeAccount(row); !found.stored || err != nil {
			return after, true, err
		}
	}
	account, err = decodeChangedAccount(found.value, after)
	return account, true, err
}

// Slot is Account for a slot.
func (c *Changes) Slot(ctx context.Context, address, slot common.Hash, step int) (value common.Hash, changed bool, err error) {
	found := c.find(address, &slot, step)
	if !found.changed {
		return value, false, nil
	}
	word := found.value
	if !found.named {
		key := slotKey(address, slot)
		row, changed, err := c.after.changedHere(ctx, slots, key[:])
		if !changed || err != nil {
			return value, false, err
		}
		if !found.stored {
			word = row
		}
	}
	if len(word) > common.HashLength {
		return value, false, fmt.Errorf("%w: a slot's word of %d bytes", ErrCorrupt, len(word))
	}
	return common.BytesToHash(word), true, nil
}

// Code returns a code that accounts had only within the block.
func (c *Changes) Code(_ context.Context, hash common.Hash) (code []byte, ok bool, err error) {
	code, ok = c.codes[hash]
	return code, ok, nil
}

// changedHere returns the row of a key, or false if the state's block has not changed it.
func (s State) changedHere(ctx context.Context, table *kv.Table, partition []byte) (row []byte, changed bool, err error) {
	row, block, found, err := s.written(ctx, table, partition, nil)
	return row, found && block == s.number, err
}

// unknownRoot stands for the storage root of an account within a block, which nobody has computed.
var unknownRoot = common.Hash{1}

// decodeChangedAccount decodes the value of an account; after is the account after the block.
func decodeChangedAccount(value []byte, after *types.StateAccount) (*types.StateAccount, error) {
	if len(value) == 0 {
		return nil, nil
	}
	d := rows.Decode(value)
	flags := d.Byte()
	account := types.NewEmptyStateAccount()
	account.Nonce = d.Uvarint()
	if err := takeBalance(&d, account.Balance, txChanges); err != nil {
		return nil, err
	}
	if flags&changedHasStorage != 0 {
		account.Root = unknownRoot
	}
	switch {
	case flags&changedHasCode != 0:
		account.CodeHash = d.Take(common.HashLength)
	case flags&changedSameCode != 0:
		if after == nil {
			return nil, fmt.Errorf("%w: %s row: an account with the code after the block, which leaves none", ErrCorrupt, txChanges.Name)
		}
		account.CodeHash = after.CodeHash
	}
	return account, d.End(txChanges.Name)
}
