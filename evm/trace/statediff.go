package trace

import (
	"bytes"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// appendStateDiff appends what a run has changed in Parity's format:
//
//	{"0x...":{"balance":{"*":{"from":"0x1","to":"0x2"}},"code":"=","nonce":"=","storage":{}}}
//
// Accounts that were created have "+" with the new value instead, those that were
// destroyed "-" with the old one.
func (t *prestateTracer) appendStateDiff(out []byte) ([]byte, error) {
	if err := t.stopped(); err != nil {
		return out, err
	}
	return t.appendAccounts(out, func(out []byte, address common.Address, a *touchedAccount) []byte {
		exists := t.env.StateDB.Exist(address)
		if a.existed && !exists { // a self-destruction may have been reverted
			return a.appendDestroyed(out)
		}
		after := t.after(address, a)
		switch {
		case a.existed && after.any():
			return a.appendChanged(out, after)
		case !a.existed && (!after.isEmpty() || exists && !t.spurious):
			return after.appendCreated(out)
		}
		return out
	})
}

// isEmpty reports whether an account that did not exist before has nothing afterwards. Under the
// rules of EIP-158 it was touched, but does not exist.
func (c *accountAfter) isEmpty() bool {
	return (c.balance == nil || c.balance.IsZero()) && c.nonce == 0 && len(c.code) == 0 && len(c.slots) == 0
}

func (a *touchedAccount) appendDestroyed(out []byte) []byte {
	out = appendWord(append(out, `{"balance":{"-":`...), &a.balance)
	out = appendBytes(append(out, `},"code":{"-":`...), a.code)
	out = appendUint(append(out, `},"nonce":{"-":`...), a.nonce)
	return append(out, `},"storage":{}}`...) // its slots are not listed
}

func (c *accountAfter) appendCreated(out []byte) []byte {
	balance := c.balance
	if balance == nil {
		balance = new(uint256.Int)
	}
	out = appendWord(append(out, `{"balance":{"+":`...), balance)
	out = appendBytes(append(out, `},"code":{"+":`...), c.code)
	out = appendUint(append(out, `},"nonce":{"+":`...), c.nonce)
	out = append(out, `},"storage":{`...)
	for i, slot := range slices.SortedFunc(maps.Keys(c.slots), common.Hash.Cmp) {
		if i > 0 {
			out = append(out, ',')
		}
		value := c.slots[slot]
		out = append(appendBytes(append(appendBytes(out, slot[:]), `:{"+":`...), value[:]), '}')
	}
	return append(out, "}}"...)
}

func (a *touchedAccount) appendChanged(out []byte, after *accountAfter) []byte {
	const unchanged = `"="`
	out = append(out, `{"balance":`...)
	if after.balance == nil {
		out = append(out, unchanged...)
	} else {
		out = appendWord(append(out, `{"*":{"from":`...), &a.balance)
		out = append(appendWord(append(out, `,"to":`...), after.balance), "}}"...)
	}
	out = append(out, `,"code":`...)
	if !after.recoded || bytes.Equal(after.code, a.code) {
		out = append(out, unchanged...)
	} else {
		out = appendChange(out, a.code, after.code)
	}
	out = append(out, `,"nonce":`...)
	if !after.renonced {
		out = append(out, unchanged...)
	} else {
		out = appendUint(append(out, `{"*":{"from":`...), a.nonce)
		out = append(appendUint(append(out, `,"to":`...), after.nonce), "}}"...)
	}
	slots := maps.Clone(after.changed)
	if slots == nil {
		slots = make(map[common.Hash]common.Hash, len(after.slots))
	}
	maps.Copy(slots, after.slots)
	out = append(out, `,"storage":{`...)
	for i, slot := range slices.SortedFunc(maps.Keys(slots), common.Hash.Cmp) {
		if i > 0 {
			out = append(out, ',')
		}
		from, to := after.changed[slot], after.slots[slot]
		out = appendChange(append(appendBytes(out, slot[:]), ':'), from[:], to[:])
	}
	return append(out, "}}"...)
}

func appendChange(out, from, to []byte) []byte {
	out = appendBytes(append(out, `{"*":{"from":`...), from)
	return append(appendBytes(append(out, `,"to":`...), to), "}}"...)
}
