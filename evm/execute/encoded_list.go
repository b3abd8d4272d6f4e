package execute

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
)

// encodedList is the access list of a block (EIP-7928), as RLP. An account is decoded when it is asked for: a trace
// of one transaction needs few of them, and to decode all takes longer than to run it. It belongs to one goroutine.
type encodedList struct {
	accounts []encodedAccount // in the order of addresses
}

// encodedAccount is an account of an access list.
type encodedAccount struct {
	address common.Address
	encoded []byte
	changes *bal.Lookup // nil until it is asked for
}

// splitList finds the accounts of an encoded access list. The addresses must ascend, as in a list whose hash is in a header.
func splitList(encoded []byte) (*encodedList, error) {
	rest, after, err := rlp.SplitList(encoded)
	if err == nil && len(after) > 0 {
		err = rlp.ErrMoreThanOneValue
	}
	if err != nil {
		return nil, err
	}
	count, err := rlp.CountValues(rest)
	if err != nil {
		return nil, err
	}
	l := &encodedList{accounts: make([]encodedAccount, count)}
	for i := range l.accounts {
		a := &l.accounts[i]
		fields, after, err := rlp.SplitList(rest)
		if err != nil {
			return nil, fmt.Errorf("account %d: %w", i, err)
		}
		address, _, err := rlp.SplitString(fields)
		if err != nil || len(address) != common.AddressLength {
			return nil, fmt.Errorf("account %d has no address", i)
		}
		a.address, a.encoded, rest = common.Address(address), rest[:len(rest)-len(after)], after
		if i > 0 && l.accounts[i-1].address.Cmp(a.address) >= 0 {
			return nil, fmt.Errorf("account %s does not come after the one before it", a.address)
		}
	}
	return l, nil
}

// of returns what the block changes of an account; nil if it is not in the list.
func (l *encodedList) of(address common.Address) (*bal.Lookup, error) {
	i, found := slices.BinarySearchFunc(l.accounts, address, func(a encodedAccount, address common.Address) int {
		return bytes.Compare(a.address[:], address[:])
	})
	if !found {
		return nil, nil
	}
	a := &l.accounts[i]
	if a.changes == nil {
		list := make(bal.BlockAccessList, 1)
		if err := rlp.DecodeBytes(a.encoded, &list[0]); err != nil {
			return nil, fmt.Errorf("account %s of the access list: %w", address, err)
		}
		a.changes, a.encoded = list.Lookup(), nil
	}
	return a.changes, nil
}

// listReader is the state before a step of a block: step 0 are the system calls before the transactions, step i is
// transaction i-1. It implements state.Reader and belongs to one goroutine.
type listReader struct {
	state.Reader // the state before the block
	list         *encodedList
	step         int
	fail         func(error) // records an error that a method of state.Reader cannot return
}

// of returns the state that has an account: with the changes of the list if it has the account.
func (r *listReader) of(address common.Address) (state.Reader, error) {
	changes, err := r.list.of(address)
	if err != nil {
		r.fail(err)
		return nil, err
	}
	if changes == nil {
		return r.Reader, nil
	}
	return state.NewReaderWithBlockLevelAccessList(r.Reader, changes, r.step), nil
}

// Account implements state.Reader.
func (r *listReader) Account(address common.Address) (*types.StateAccount, error) {
	from, err := r.of(address)
	if err != nil {
		return nil, err
	}
	return from.Account(address)
}

// Storage implements state.Reader.
func (r *listReader) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	from, err := r.of(address)
	if err != nil {
		return common.Hash{}, err
	}
	return from.Storage(address, slot)
}

// Has implements state.Reader.
func (r *listReader) Has(address common.Address, hash common.Hash) bool {
	from, err := r.of(address)
	return err == nil && from.Has(address, hash)
}

// Code implements state.Reader.
func (r *listReader) Code(address common.Address, hash common.Hash) []byte {
	from, err := r.of(address)
	if err != nil {
		return nil
	}
	return from.Code(address, hash)
}

// CodeSize implements state.Reader.
func (r *listReader) CodeSize(address common.Address, hash common.Hash) int {
	return len(r.Code(address, hash))
}
