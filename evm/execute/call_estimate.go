package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// estimateTolerance is how far above the least sufficient gas limit an estimate
// may lie, as part of itself. Closing in further only costs time: what the
// transaction needs changes until it is in a block.
const estimateTolerance = 0.015

// EstimateGas returns a gas limit with which the message runs without failing,
// close to the least one. Its error is that of [Executor.Call] where no limit is
// enough.
func (e *Executor) EstimateGas(ctx context.Context, at At, message *Message, options CallOptions) (uint64, error) {
	var gas uint64
	err := e.simulate(ctx, at, options, func(s *simulation) error {
		msg, err := s.message(message)
		if err != nil {
			return err
		}
		search := &gasSearch{simulation: s, message: msg}
		if message.Gas == nil {
			msg.GasLimit = 0
		}
		gas, err = search.estimate()
		return err
	})
	return gas, err
}

// gasSearch looks for the least gas limit with which a message does not fail.
type gasSearch struct {
	*simulation
	message *core.Message
}

func (g *gasSearch) estimate() (uint64, error) {
	highest, err := g.highest()
	if err != nil {
		return 0, err
	}
	if g.isTransfer() {
		// No code runs, so what it uses is what it needs: one run will do,
		// unless an access list or the like makes it cost more.
		if result, err := g.attempt(params.TxGas); err == nil && result != nil && !result.Failed() {
			return result.UsedGas, nil
		}
	}
	result, err := g.attempt(highest)
	switch {
	case err != nil:
		return 0, err
	case result == nil, errors.Is(result.Err, vm.ErrOutOfGas):
		return 0, callErrorf("gas required exceeds allowance (%d)", highest)
	case result.Failed():
		return 0, outcomeError(result)
	}
	// Hardly any call needs more than it used at its most, besides the 64th
	// part that each frame keeps back: that is tried first.
	low, high := result.UsedGas-1, highest
	if likely := (result.MaxUsedGas + params.CallStipend) * 64 / 63; likely < high {
		if low, high, err = g.narrow(low, high, likely); err != nil {
			return 0, err
		}
	}
	for low+1 < high && float64(high-low)/float64(high) >= estimateTolerance {
		// The answer mostly lies at the lower end: steps from there are short.
		middle := min(low+(high-low)/2, 2*low)
		if low, high, err = g.narrow(low, high, middle); err != nil {
			return 0, err
		}
	}
	return high, nil
}

// narrow tries a limit between one that is too low and one that is enough, and
// returns the two that are left.
func (g *gasSearch) narrow(low, high, gas uint64) (uint64, uint64, error) {
	result, err := g.attempt(gas)
	if err != nil {
		return low, high, err
	}
	if result == nil || result.Failed() {
		return gas, high, nil
	}
	return low, gas, nil
}

// attempt runs the message with a gas limit. The result is nil where the limit
// is not even enough to begin.
func (g *gasSearch) attempt(gas uint64) (*core.ExecutionResult, error) {
	g.message.GasLimit = gas
	result, err := g.try(g.message, nil)
	switch {
	case errors.Is(err, core.ErrIntrinsicGas):
		return nil, nil
	case err != nil:
		return nil, &CallError{fmt.Errorf("failed with %d gas: %w", gas, err)}
	}
	return result, nil
}

func (g *gasSearch) isTransfer() bool {
	return len(g.message.Data) == 0 && g.message.To != nil && g.state.GetCodeSize(*g.message.To) == 0
}

// highest is the most gas that the message may be given: what it asks for, else
// the block's limit; no more than a transaction may have and its sender can pay for.
func (g *gasSearch) highest() (uint64, error) {
	gas := g.block.GasLimit
	if g.message.GasLimit >= params.TxGas {
		gas = g.message.GasLimit
	}
	if g.rules.IsOsaka && !g.rules.IsAmsterdam {
		gas = min(gas, params.MaxTxGas)
	}
	if !g.message.GasFeeCap.IsZero() {
		payable, err := g.payable()
		if err != nil {
			return 0, err
		}
		if payable.IsUint64() {
			gas = min(gas, payable.Uint64())
		}
	}
	return min(gas, g.gasCap), nil
}

// payable is the gas that the sender can pay for at the greatest price it offers.
func (g *gasSearch) payable() (*uint256.Int, error) {
	left := g.state.GetBalance(g.message.From).Clone()
	if g.message.Value.Cmp(left) >= 0 {
		return nil, &CallError{core.ErrInsufficientFundsForTransfer}
	}
	left.Sub(left, g.message.Value)
	if blobs := len(g.message.BlobHashes); g.rules.IsCancun && blobs > 0 {
		cost := uint256.NewInt(uint64(blobs) * params.BlobTxBlobGasPerBlob)
		if _, overflow := cost.MulOverflow(cost, g.message.BlobGasFeeCap); overflow || cost.Cmp(left) >= 0 {
			return nil, &CallError{core.ErrInsufficientFunds}
		}
		left.Sub(left, cost)
	}
	return left.Div(left, g.message.GasFeeCap), nil
}
