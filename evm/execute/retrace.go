package execute

import (
	"context"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
)

// Traces runs a block on its parent and returns who takes part in its traces, which the executor must record. It reads no
// trie nodes, also before Cancun, so it checks neither the state root nor state roots in receipts. Of the outcome it checks
// the gas and the logs.
func (e *Executor) Traces(ctx context.Context, parent Parent, block *types.Block) (*evm.Traces, error) {
	if err := e.verifyBefore(ctx, parent, block); err != nil {
		return nil, err
	}
	db := newDatabase(ctx, parent, true)
	statedb, err := state.New(parent.Header.Root, db)
	if err != nil {
		return nil, fmt.Errorf("open state of block %d: %w", parent.Header.Number, err)
	}
	ran, err := e.run(ctx, parent, block, statedb, &db.readFailure)
	if failed := db.failure(); failed != nil {
		return nil, fmt.Errorf("execute block %d: read what it needs: %w", block.NumberU64(), failed)
	}
	header := block.Header()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, refused(block, CheckExecution, err)
	case ran.gasUsed != header.GasUsed:
		return nil, mismatch(block, CheckGasUsed, header.GasUsed, ran.gasUsed)
	case types.MergeBloom(ran.receipts) != header.Bloom:
		return nil, refused(block, CheckBloom, fmt.Errorf("the logs are not those of the header"))
	}
	return ran.traces, nil
}
