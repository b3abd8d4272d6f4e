package trace

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// changedAccount is an account in the result of prestateTracer with diffMode. Before the
// transaction all members are present, after it only the changed ones.
type changedAccount struct {
	Balance *hexutil.Big                `json:"balance"`
	Nonce   *uint64                     `json:"nonce"`
	Code    *hexutil.Bytes              `json:"code"`
	Storage map[common.Hash]common.Hash `json:"storage"`
}

// appendStateDiff appends Parity's stateDiff, made from the result of prestateTracer
// with diffMode:
//
//	{"0x...":{"balance":{"*":{"from":"0x1","to":"0x2"}},"code":"=","nonce":"=","storage":{}}}
//
// Accounts that were created have "+" with the new value instead, those that were
// destroyed "-" with the old one.
func appendStateDiff(out []byte, result json.RawMessage) ([]byte, error) {
	var diff struct {
		Pre, Post map[common.Address]*changedAccount
	}
	if err := json.Unmarshal(result, &diff); err != nil {
		return out, err
	}
	all := maps.Clone(diff.Pre)
	if all == nil {
		all = make(map[common.Address]*changedAccount)
	}
	maps.Copy(all, diff.Post)
	// go-ethereum also lists accounts that were touched but stayed empty, and so never
	// existed.
	maps.DeleteFunc(all, func(address common.Address, _ *changedAccount) bool {
		return diff.Pre[address] == nil && diff.Post[address].isEmpty()
	})
	out = append(out, '{')
	for i, address := range slices.SortedFunc(maps.Keys(all), common.Address.Cmp) {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendChanges(append(appendBytes(out, address[:]), ':'), diff.Pre[address], diff.Post[address])
	}
	return append(out, '}'), nil
}

// isEmpty reports whether an account has no balance, nonce, code or storage.
func (a *changedAccount) isEmpty() bool {
	return (a.Balance == nil || a.Balance.ToInt().Sign() == 0) && (a.Nonce == nil || *a.Nonce == 0) &&
		(a.Code == nil || len(*a.Code) == 0) && len(a.Storage) == 0
}

// appendChanges appends the changes of an account; a nil side means that it did not exist.
func appendChanges(out []byte, before, after *changedAccount) []byte {
	for _, member := range []struct {
		name string
		of   func(*changedAccount) []byte // nil if absent, that is, unchanged
	}{
		{`{"balance":`, (*changedAccount).balance}, {`,"code":`, (*changedAccount).code}, {`,"nonce":`, (*changedAccount).nonce},
	} {
		var old, changed []byte
		if before != nil {
			old = orDefault(member.of(before), member.of)
		}
		if after != nil {
			changed = member.of(after)
		}
		out = append(out, member.name...)
		switch {
		case before == nil:
			out = append(append(append(out, `{"+":`...), orDefault(changed, member.of)...), '}')
		case after == nil:
			out = append(append(append(out, `{"-":`...), old...), '}')
		case changed == nil || bytes.Equal(old, changed):
			out = append(out, `"="`...)
		default:
			out = appendChange(out, old, changed)
		}
	}
	return append(appendSlotChanges(append(out, `,"storage":`...), before, after), '}')
}

// appendSlotChanges appends the changed slots. Those of a destroyed account are not listed.
func appendSlotChanges(out []byte, before, after *changedAccount) []byte {
	out = append(out, '{')
	if after != nil {
		slots := make(map[common.Hash]common.Hash) // values before
		for key := range after.Storage {
			slots[key] = common.Hash{}
		}
		if before != nil {
			maps.Copy(slots, before.Storage)
		}
		first := true
		for _, key := range slices.SortedFunc(maps.Keys(slots), common.Hash.Cmp) {
			old, value := slots[key], after.Storage[key]
			if old == value {
				continue
			}
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(appendBytes(out, key[:]), ':')
			if before == nil {
				out = append(appendBytes(append(out, `{"+":`...), value[:]), '}')
			} else {
				out = appendChange(out, appendBytes(nil, old[:]), appendBytes(nil, value[:]))
			}
		}
	}
	return append(out, '}')
}

func appendChange(out, from, to []byte) []byte {
	out = append(append(out, `{"*":{"from":`...), from...)
	return append(append(append(out, `,"to":`...), to...), "}}"...)
}

// orDefault returns the JSON of a member that is omitted if zero.
func orDefault(value []byte, of func(*changedAccount) []byte) []byte {
	if value != nil {
		return value
	}
	return of(&changedAccount{Balance: new(hexutil.Big), Nonce: new(uint64), Code: new(hexutil.Bytes)})
}

func (a *changedAccount) balance() []byte {
	if a.Balance == nil {
		return nil
	}
	return []byte(`"` + a.Balance.String() + `"`)
}

func (a *changedAccount) nonce() []byte {
	if a.Nonce == nil {
		return nil
	}
	return append(strconv.AppendUint([]byte(`"0x`), *a.Nonce, 16), '"')
}

func (a *changedAccount) code() []byte {
	if a.Code == nil {
		return nil
	}
	return appendBytes(nil, *a.Code)
}
