package execute

import (
	"context"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
)

// changedReader is the state after a step of a block, by its stored changes. It implements state.Reader.
type changedReader struct {
	state.Reader // the state before the block
	ctx          context.Context
	changes      StoredChanges
	step         int
	failed       *readFailure // of the run
}

// Account implements state.Reader.
func (r *changedReader) Account(address common.Address) (*types.StateAccount, error) {
	if err := r.failed.failure(); err != nil {
		return nil, err
	}
	account, changed, err := r.changes.Account(r.ctx, evm.HashAddress(address), r.step)
	switch {
	case err != nil:
		r.failed.fail(err)
		return nil, err
	case changed:
		return account, nil
	}
	return r.Reader.Account(address)
}

// Storage implements state.Reader.
func (r *changedReader) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	if err := r.failed.failure(); err != nil {
		return common.Hash{}, err
	}
	value, changed, err := r.changes.Slot(r.ctx, evm.HashAddress(address), evm.HashSlot(slot), r.step)
	switch {
	case err != nil:
		r.failed.fail(err)
		return common.Hash{}, err
	case changed:
		return value, nil
	}
	return r.Reader.Storage(address, slot)
}

// Has implements state.Reader.
func (r *changedReader) Has(address common.Address, hash common.Hash) bool {
	return len(r.Code(address, hash)) > 0
}

// Code implements state.Reader.
func (r *changedReader) Code(address common.Address, hash common.Hash) []byte {
	if r.failed.failure() != nil {
		return nil
	}
	code, ok, err := r.changes.Code(r.ctx, hash)
	switch {
	case err != nil:
		r.failed.fail(err)
		return nil
	case ok:
		return code
	}
	return r.Reader.Code(address, hash)
}

// CodeSize implements state.Reader.
func (r *changedReader) CodeSize(address common.Address, hash common.Hash) int {
	return len(r.Code(address, hash))
}
