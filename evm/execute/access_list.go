package execute

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// verifyAccessList checks the access list that a block arrived with, if any, by
// itself: that it is the one its header names and well formed.
func (e *Executor) verifyAccessList(block *types.Block) error {
	list, want := block.AccessList(), block.Header().BlockAccessListHash
	switch {
	case list == nil:
		return nil // execution makes it
	case want == nil:
		return mismatch(block, CheckAccessList, "none", list.Hash())
	}
	if got := list.Hash(); got != *want {
		return mismatch(block, CheckAccessList, *want, got)
	}
	if err := list.Validate(block.GasLimit(), len(block.Transactions())); err != nil {
		return refused(block, CheckAccessList, err)
	}
	return nil
}

// verifyAccesses compares the accesses that execution recorded with the header. It
// returns the encoded list, nil before Amsterdam.
func verifyAccesses(block *types.Block, made *bal.ConstructionBlockAccessList) ([]byte, error) {
	want := block.Header().BlockAccessListHash
	switch {
	case made == nil && want == nil:
		return nil, nil
	case made == nil:
		return nil, mismatch(block, CheckAccessList, want, "none")
	case want == nil: // which the check of the header has refused
		return nil, mismatch(block, CheckAccessList, "none", made.ToEncodingObj().Hash())
	}
	list := block.AccessList()
	if list == nil || !sameAccesses(made, *list) {
		list = made.ToEncodingObj()
	}
	encoded, err := rlp.EncodeToBytes(list)
	if err != nil {
		return nil, fmt.Errorf("encode the access list of block %d: %w", block.NumberU64(), err)
	}
	if got := crypto.Keccak256Hash(encoded); got != *want {
		if theirs := block.AccessList(); theirs != nil {
			return nil, mismatch(block, CheckAccessList, want, fmt.Sprintf("%s: %s", got, firstDifference(*theirs, *list)))
		}
		return nil, mismatch(block, CheckAccessList, want, got)
	}
	if block.AccessList() != nil {
		return encoded, nil // VerifyBody has validated it
	}
	if err := list.Validate(block.GasLimit(), len(block.Transactions())); err != nil {
		return nil, refused(block, CheckAccessList, err)
	}
	return encoded, nil
}

// sameAccesses reports whether a valid list has the recorded accesses. It is quicker than
// to sort and encode the records.
func sameAccesses(made *bal.ConstructionBlockAccessList, list bal.BlockAccessList) bool {
	if len(made.Accounts) != len(list) {
		return false
	}
	for i := range list {
		account, ok := made.Accounts[list[i].Address]
		if !ok || !sameAccess(account, &list[i]) {
			return false
		}
	}
	return true
}

func sameAccess(made *bal.ConstructionAccountAccess, listed *bal.AccountAccess) bool {
	if len(made.StorageReads) != len(listed.StorageReads) || len(made.StorageWrites) != len(listed.StorageChanges) ||
		len(made.BalanceChanges) != len(listed.BalanceChanges) || len(made.NonceChanges) != len(listed.NonceChanges) ||
		len(made.CodeChange) != len(listed.CodeChanges) {
		return false
	}
	for _, slot := range listed.StorageReads {
		if _, ok := made.StorageReads[slot.Bytes32()]; !ok {
			return false
		}
	}
	for _, change := range listed.StorageChanges {
		writes := made.StorageWrites[change.Slot.Bytes32()]
		if len(writes) != len(change.SlotChanges) {
			return false
		}
		for _, write := range change.SlotChanges {
			if value, ok := writes[write.BlockAccessIndex]; !ok || value != write.PostValue.Bytes32() {
				return false
			}
		}
	}
	for _, change := range listed.BalanceChanges {
		if balance, ok := made.BalanceChanges[change.BlockAccessIndex]; !ok || !balance.Eq(change.PostBalance) {
			return false
		}
	}
	for _, change := range listed.NonceChanges {
		if nonce, ok := made.NonceChanges[change.BlockAccessIndex]; !ok || nonce != change.PostNonce {
			return false
		}
	}
	for _, change := range listed.CodeChanges {
		if code, ok := made.CodeChange[change.BlockAccessIndex]; !ok || !bytes.Equal(code, change.NewCode) {
			return false
		}
	}
	return true
}

// firstDifference says where two sorted lists first differ.
func firstDifference(theirs, ours bal.BlockAccessList) string {
	for i := range min(len(theirs), len(ours)) {
		a, b := theirs[i], ours[i]
		switch order := a.Address.Cmp(b.Address); {
		case order < 0:
			return extra(a.Address)
		case order > 0:
			return missing(b.Address)
		}
		for _, field := range []struct {
			name       string
			ours, them any
		}{
			{"storage changes", b.StorageChanges, a.StorageChanges},
			{"storage reads", b.StorageReads, a.StorageReads},
			{"balance changes", b.BalanceChanges, a.BalanceChanges},
			{"nonce changes", b.NonceChanges, a.NonceChanges},
			{"code changes", b.CodeChanges, a.CodeChanges},
		} {
			us, them := reflect.ValueOf(field.ours), reflect.ValueOf(field.them)
			if us.Len()+them.Len() > 0 && !reflect.DeepEqual(field.ours, field.them) {
				return fmt.Sprintf("the %s of account %s differ", field.name, a.Address)
			}
		}
	}
	switch {
	case len(theirs) > len(ours):
		return extra(theirs[len(ours)].Address)
	case len(theirs) < len(ours):
		return missing(ours[len(theirs)].Address)
	}
	return "no account differs"
}

func extra(address common.Address) string {
	return fmt.Sprintf("account %s is listed and was not accessed", address)
}

func missing(address common.Address) string {
	return fmt.Sprintf("account %s was accessed and is not listed", address)
}
