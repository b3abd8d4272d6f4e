package execute

import (
	"context"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/core/types"
)

// Traces runs a block on its parent and returns who takes part in its traces, which the executor must record. It reads no
// trie nodes, also before Cancun, so it checks neither the state root nor state roots in receipts. Of the outcome it checks
// the gas and the logs.
func (e *Executor) Traces(ctx context.Context, parent Parent, block *types.Block) (*evm.Traces, error) {
	if err := e.verifyBefore(ctx, parent, block); err != nil {
		return nil, err
	}
	_, ran, err := e.runOn(ctx, parent, block, newDatabase(ctx, parent, true))
	if err != nil {
		return nil, err
	}
	header := block.Header()
	switch {
	case ran.gasUsed != header.GasUsed:
		return nil, mismatch(block, CheckGasUsed, header.GasUsed, ran.gasUsed)
	case types.MergeBloom(ran.receipts) != header.Bloom:
		return nil, refused(block, CheckBloom, fmt.Errorf("the logs are not those of the header"))
	}
	return ran.traces, nil
}
