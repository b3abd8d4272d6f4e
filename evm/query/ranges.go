package query

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// RangedAccount is an account of [View.EachAccount]. It is valid during the call that it is passed to.
type RangedAccount struct {
	*types.StateAccount
	Hash  common.Hash // of its address
	tries evm.State
	codes evm.State
}

// EachAccount calls found with the accounts after a block of the view, in the order of the
// hashes of their addresses and beginning with the hash from, until found returns false or an
// error. contents is what found reads of each account.
func (v *View) EachAccount(ctx context.Context, number uint64, from common.Hash, contents execute.Contents, found func(RangedAccount) (more bool, err error)) error {
	header, err := v.Header(ctx, number)
	if err != nil {
		return err
	}
	tries, end := execute.ReadAhead(ctx, v.stateWithTries(number), contents)
	defer end()
	codes := tries
	if v.hasRemoteState(number, archive.OfTries) { // codes may be stored nevertheless
		codes = v.State(number)
	}
	return execute.EachLeaf(ctx, tries, execute.TrieID{Root: header.Root}, from, func(hash common.Hash, value []byte) (bool, error) {
		account := new(types.StateAccount)
		if err := rlp.DecodeBytes(value, account); err != nil {
			return false, fmt.Errorf("%w: account %x in the state trie of block %d: %v", archive.ErrCorrupt, hash, number, err)
		}
		return found(RangedAccount{account, hash, tries, codes})
	})
}

// Code returns the account's code.
func (a RangedAccount) Code(ctx context.Context) ([]byte, error) {
	return a.codes.Code(ctx, common.BytesToHash(a.CodeHash))
}

// EachSlot calls found with all slots of the account, in the order of their hashes, until found returns false or an error.
func (a RangedAccount) EachSlot(ctx context.Context, found func(hash, value common.Hash) (more bool, err error)) error {
	return eachSlot(ctx, a.tries, execute.TrieID{Owner: a.Hash, Root: a.Root}, common.Hash{}, found)
}

// EachSlot calls found with the slots of an account after a block of the view, in the order of
// their hashes and beginning with the hash from, until found returns false or an error. account
// is the hash of the address, root the account's storage root.
func (v *View) EachSlot(ctx context.Context, number uint64, account, root, from common.Hash, found func(hash, value common.Hash) (more bool, err error)) error {
	return eachSlot(ctx, v.stateWithTries(number), execute.TrieID{Owner: account, Root: root}, from, found)
}

func eachSlot(ctx context.Context, state evm.State, id execute.TrieID, from common.Hash, found func(hash, value common.Hash) (more bool, err error)) error {
	return execute.EachLeaf(ctx, state, id, from, func(hash common.Hash, value []byte) (bool, error) {
		_, word, _, err := rlp.Split(value)
		if err != nil || len(word) > common.HashLength {
			return false, fmt.Errorf("%w: slot %x of %x is not a word: %x", archive.ErrCorrupt, hash, id.Owner, value)
		}
		return found(hash, common.BytesToHash(word))
	})
}

// Modified returns the addresses of the accounts that differ after the block to from what they
// were after the block from, in the order of their hashes. Deleted accounts are left out. The blocks in between are executed, because addresses are not stored.
func (v *View) Modified(ctx context.Context, from, to uint64) ([]common.Address, error) {
	touched := make(map[common.Hash]common.Address)
	for number := from + 1; number <= to; number++ {
		block, err := v.Block(ctx, number)
		if err != nil {
			return nil, err
		}
		parentOf := v.parent
		if v.Executor().RootInline(block.Header()) {
			parentOf = v.parentWithTries
		}
		parent, err := parentOf(ctx, number-1)
		if err != nil {
			return nil, err
		}
		addresses, err := v.Executor().Touched(ctx, parent, block)
		if err != nil {
			return nil, err
		}
		for _, address := range addresses {
			touched[evm.HashAddress(address)] = address
		}
	}
	before, after := v.State(from), v.State(to)
	var modified []common.Address
	for _, hash := range slices.SortedFunc(maps.Keys(touched), common.Hash.Cmp) {
		was, err := before.Account(ctx, hash)
		if err != nil {
			return nil, err
		}
		is, err := after.Account(ctx, hash)
		if err != nil {
			return nil, err
		}
		if is != nil && (was == nil || !sameAccount(was, is)) {
			modified = append(modified, touched[hash])
		}
	}
	return modified, nil
}

func sameAccount(a, b *types.StateAccount) bool {
	return a.Nonce == b.Nonce && a.Balance.Eq(b.Balance) && a.Root == b.Root && bytes.Equal(a.CodeHash, b.CodeHash)
}

// Block returns a block of the view, with its body but without its access list.
func (v *View) Block(ctx context.Context, number uint64) (*types.Block, error) {
	header, err := v.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	body, err := v.Body(ctx, number, nil)
	if err != nil {
		return nil, err
	}
	return body.Block(header.Header)
}

// Witness returns what a block of the view needs to be executed without a state.
func (v *View) Witness(ctx context.Context, number uint64) (*execute.Witness, error) {
	if number == 0 {
		return nil, execute.ErrGenesis
	}
	block, err := v.Block(ctx, number)
	if err != nil {
		return nil, err
	}
	parent, err := v.parentWithTries(ctx, number-1)
	if err != nil {
		return nil, err
	}
	return v.Executor().Witness(ctx, parent, block)
}
