package execute

import (
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// StateOverrides replace parts of accounts for a call.
type StateOverrides map[common.Address]AccountOverride

// AccountOverride replaces parts of an account. A nil member leaves that part as it is.
type AccountOverride struct {
	Nonce            *uint64
	Code             *[]byte
	Balance          *uint256.Int
	State            map[common.Hash]common.Hash // all of the storage; not with StateDiff
	StateDiff        map[common.Hash]common.Hash // some slots
	MovePrecompileTo *common.Address             // where the precompile at this address is found
}

// BlockOverrides replace members of the block that a call sees. A nil member leaves the
// block's own.
type BlockOverrides struct {
	Number        *uint256.Int
	Difficulty    *uint256.Int
	Time          *uint64
	GasLimit      *uint64
	FeeRecipient  *common.Address
	PrevRandao    *common.Hash
	BaseFeePerGas *uint256.Int
	BlobBaseFee   *uint256.Int
}

// apply changes the block that a call sees.
func (o *BlockOverrides) apply(block *vm.BlockContext) {
	override := func(field **big.Int, by *uint256.Int) {
		if by != nil {
			*field = by.ToBig()
		}
	}
	override(&block.BlockNumber, o.Number)
	override(&block.Difficulty, o.Difficulty)
	override(&block.BaseFee, o.BaseFeePerGas)
	override(&block.BlobBaseFee, o.BlobBaseFee)
	if o.Time != nil {
		block.Time = *o.Time
	}
	if o.GasLimit != nil {
		block.GasLimit = *o.GasLimit
	}
	if o.FeeRecipient != nil {
		block.Coinbase = *o.FeeRecipient
	}
	if o.PrevRandao != nil {
		block.Random = o.PrevRandao
	}
}

// overriddenState is a state before the transaction of a call.
type overriddenState interface {
	SetNonce(address common.Address, nonce uint64, reason tracing.NonceChangeReason)
	SetCode(address common.Address, code []byte, reason tracing.CodeChangeReason) []byte
	SetBalance(address common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason)
	SetStorage(address common.Address, storage map[common.Hash]common.Hash)
	SetState(address common.Address, slot, value common.Hash) common.Hash
	Finalise(rules params.Rules) *bal.ConstructionBlockAccessList
}

// apply changes the state that a call sees, nil if it is changed already, and precompiles,
// which may be nil where there are none that can be moved. It goes by address, so that the same
// mistake always gives the same error.
func (o StateOverrides) apply(overridden overriddenState, precompiles vm.PrecompiledContracts) error {
	moved := make(map[common.Address]bool) // where precompiles have been moved to
	for _, address := range slices.SortedFunc(maps.Keys(o), common.Address.Cmp) {
		account := o[address]
		if moved[address] {
			return callErrorf("account %s has already been overridden by a precompile", address.Hex())
		}
		if to := account.MovePrecompileTo; to != nil {
			if err := o.move(precompiles, address, *to); err != nil {
				return err
			}
			moved[*to] = true
		}
		delete(precompiles, address) // who is overridden is no precompile any more
		if overridden == nil {
			continue
		}
		if err := account.apply(overridden, address); err != nil {
			return err
		}
	}
	if overridden == nil {
		return nil
	}
	// As if a transaction before the call had made the changes: refunds and
	// original values of slots are counted from them.
	overridden.Finalise(params.Rules{})
	return nil
}

func (o StateOverrides) move(precompiles vm.PrecompiledContracts, from, to common.Address) error {
	precompile, ok := precompiles[from]
	if !ok {
		return callErrorf("account %s is not a precompile", from.Hex())
	}
	if _, ok := o[to]; ok {
		return callErrorf("account %s is already overridden", to.Hex())
	}
	precompiles[to] = precompile
	return nil
}

func (a *AccountOverride) apply(overridden overriddenState, address common.Address) error {
	if a.State != nil && a.StateDiff != nil {
		return callErrorf("account %s has both 'state' and 'stateDiff'", address.Hex())
	}
	if a.Nonce != nil {
		overridden.SetNonce(address, *a.Nonce, tracing.NonceChangeUnspecified)
	}
	if a.Code != nil {
		overridden.SetCode(address, *a.Code, tracing.CodeChangeUnspecified)
	}
	if a.Balance != nil {
		overridden.SetBalance(address, a.Balance, tracing.BalanceChangeUnspecified)
	}
	if a.State != nil {
		overridden.SetStorage(address, a.State)
	}
	for slot, value := range a.StateDiff {
		overridden.SetState(address, slot, value)
	}
	return nil
}
