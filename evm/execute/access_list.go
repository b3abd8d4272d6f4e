package execute

import (
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

// verifyAccesses compares the access list that execution made with the header. It
// returns the encoded list, nil before Amsterdam.
func verifyAccesses(block *types.Block, made *bal.BlockAccessList) ([]byte, error) {
	want := block.Header().BlockAccessListHash
	switch {
	case made == nil && want == nil:
		return nil, nil
	case made == nil:
		return nil, mismatch(block, CheckAccessList, want, "none")
	case want == nil: // which the check of the header has refused
		return nil, mismatch(block, CheckAccessList, "none", made.Hash())
	}
	encoded, err := rlp.EncodeToBytes(made)
	if err != nil {
		return nil, fmt.Errorf("encode the access list of block %d: %w", block.NumberU64(), err)
	}
	if got := crypto.Keccak256Hash(encoded); got != *want {
		if list := block.AccessList(); list != nil {
			return nil, mismatch(block, CheckAccessList, want, fmt.Sprintf("%s: %s", got, firstDifference(*list, *made)))
		}
		return nil, mismatch(block, CheckAccessList, want, got)
	}
	if err := made.Validate(block.GasLimit(), len(block.Transactions())); err != nil {
		return nil, refused(block, CheckAccessList, err)
	}
	return encoded, nil
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
