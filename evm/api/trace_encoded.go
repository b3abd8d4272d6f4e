package api

import (
	"context"
	"errors"
	"fmt"

	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
)

// traceEncodedBlock answers debug_traceBlock: the block is a parameter, and its parent must
// be on the chain.
func (a *API) traceEncodedBlock(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	encoded, config := args.Bytes(0), a.traceConfig(&args, 1)
	if args.Err != nil {
		return out, args.Err
	}
	block := new(types.Block)
	if err := rlp.DecodeBytes(encoded, block); err != nil {
		return out, &trace.Error{Err: fmt.Errorf("could not decode block: %w", err)}
	}
	if err := block.SanityCheck(); err != nil {
		return out, &trace.Error{Err: err}
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	input, err := view.InputOf(ctx, block)
	if errors.Is(err, query.ErrUnknownHash) {
		return out, &trace.Error{Err: fmt.Errorf("block %#x not found", block.ParentHash())}
	}
	if wrong, ok := errors.AsType[*query.ParentError](err); ok {
		return out, &trace.Error{Err: wrong}
	}
	if err != nil {
		return out, err
	}
	if err := checkBlock(a.chain.Executor().Config(), block, input.Parent.Header); err != nil {
		return out, &trace.Error{Err: err}
	}
	out, err = a.appendTraces(ctx, out, input, config)
	return out, callError(ctx, err, out)
}

// checkBlock refuses a block that cannot follow its parent, where running it could harm the
// server.
func checkBlock(config *params.ChainConfig, block *types.Block, parent *types.Header) error {
	if err := checkFees(config, block.Header(), parent); err != nil {
		return err
	}
	return checkTransactions(block, parent)
}

// checkFees refuses a header without the fees that its rules have, and one with more excess
// blob gas than any that could follow its parent. The price of blobs is exponential in the
// excess: its number of bits grows with the excess, and the time to compute it with the square.
func checkFees(config *params.ChainConfig, header, parent *types.Header) error {
	if header.BaseFee == nil && config.IsLondon(header.Number) {
		return errors.New("the block has no base fee")
	}
	excess, cancun := header.ExcessBlobGas, config.IsCancun(header.Number, header.Time)
	switch {
	case excess == nil && cancun:
		return errors.New("the block has no excess blob gas")
	case excess == nil:
		return nil
	case !cancun:
		return errors.New("the block has excess blob gas before Cancun")
	}
	var most uint64
	if parent.ExcessBlobGas != nil && parent.BlobGasUsed != nil {
		most = *parent.ExcessBlobGas + *parent.BlobGasUsed
	}
	if *excess > most {
		return fmt.Errorf("the block's excess blob gas %d is above that of its parent with the blob gas that it used, %d", *excess, most)
	}
	return nil
}

// checkTransactions refuses a block with more gas than any that could follow its parent: what a
// transaction does to memory is bounded by its gas alone. The gas limit of a block is close
// to that of its parent, and doubles once, in London.
func checkTransactions(block *types.Block, parent *types.Header) error {
	limit := block.GasLimit()
	if limit/2 > parent.GasLimit {
		return fmt.Errorf("the block's gas limit %d is above twice that of its parent, %d", limit, parent.GasLimit)
	}
	for i, tx := range block.Transactions() {
		if tx.Gas() > limit {
			return fmt.Errorf("transaction %d has %d gas, above the block's limit of %d", i, tx.Gas(), limit)
		}
		if bits := tx.Value().BitLen(); bits > 256 {
			return fmt.Errorf("transaction %d has a value of %d bits (want at most 256)", i, bits)
		}
	}
	return nil
}
