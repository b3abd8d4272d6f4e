package execute

import (
	"context"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// Genesis makes the delta of a chain's first block.
func Genesis(ctx context.Context, genesis *core.Genesis) (*evm.Delta, error) {
	db := newDatabase(ctx, Parent{State: nothing{}}, false)
	statedb, err := state.New(types.EmptyRootHash, db)
	if err != nil {
		return nil, err
	}
	for address, account := range genesis.Alloc {
		if account.Balance != nil {
			balance, overflow := uint256.FromBig(account.Balance)
			if overflow {
				return nil, fmt.Errorf("genesis: balance of %s: more than 256 bits", address)
			}
			statedb.AddBalance(address, balance, tracing.BalanceIncreaseGenesisBalance)
		}
		statedb.SetCode(address, account.Code, tracing.CodeChangeGenesis)
		statedb.SetNonce(address, account.Nonce, tracing.NonceChangeGenesis)
		for slot, value := range account.Storage {
			statedb.SetState(address, slot, value)
		}
	}
	// No rules: accounts that a later fork would call empty stay.
	root, err := statedb.Commit(params.Rules{}, 0)
	if err == nil {
		err = db.failure()
	}
	if err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	block := genesis.ToBlock()
	if block.Root() != root {
		return nil, mismatch(block, CheckStateRoot, block.Root(), root)
	}
	x := &Executed{Block: block, Traces: new(evm.Traces), update: db.update, rooted: true}
	if block.Header().BlockAccessListHash != nil {
		x.AccessList = rlp.EmptyList
	}
	return x.delta(), nil
}

// nothing is the state before the genesis.
type nothing struct{}

func (nothing) Account(context.Context, common.Hash) (*types.StateAccount, error) { return nil, nil }
func (nothing) Slot(context.Context, common.Hash, common.Hash) (common.Hash, error) {
	return common.Hash{}, nil
}
func (nothing) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	return nil, fmt.Errorf("%w: code %x", evm.ErrMissing, hash)
}
func (nothing) Node(_ context.Context, _ common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	return nil, fmt.Errorf("%w: trie node %x at path %x", evm.ErrMissing, hash, path)
}
