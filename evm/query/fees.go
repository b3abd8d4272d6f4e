package query

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// Limits of a fee history request, as in geth.
const (
	maxFeeBlocks   = 1024
	maxPercentiles = 100
)

// ErrBeyondHead means that a fee history was requested up to a block above the head.
var ErrBeyondHead = errors.New("request beyond head block")

// ErrPercentile means that percentiles are too many, out of range or not ascending.
var ErrPercentile = errors.New("invalid reward percentile")

// FeeHistory lists the fees of consecutive blocks, oldest first.
type FeeHistory struct {
	Oldest            uint64
	BaseFees          []*big.Int // including the block after the range
	GasUsedRatios     []float64
	BlobBaseFees      []*big.Int // including the block after the range
	BlobGasUsedRatios []float64
	// Rewards are, for each block, the tips at the requested percentiles of the gas used
	// by its transactions; nil if no percentiles were requested.
	Rewards [][]uint256.Int
}

// FeeHistory returns the fees of up to blocks blocks ending with last. It returns at most
// maxFeeBlocks. The result is empty if blocks is 0.
func (v *View) FeeHistory(ctx context.Context, blocks uint64, last chain.BlockID, percentiles []float64) (*FeeHistory, error) {
	if blocks == 0 {
		return &FeeHistory{}, nil
	}
	if err := checkPercentiles(percentiles); err != nil {
		return nil, err
	}
	if last.Tag == chain.NoTag && last.Hash == nil && last.Number > v.head.Number {
		return nil, fmt.Errorf("%w: requested %d, head %d", ErrBeyondHead, last.Number, v.head.Number)
	}
	v, newest, err := v.Resolve(ctx, last)
	if err != nil {
		return nil, err
	}
	blocks = min(blocks, maxFeeBlocks, newest+1-min(newest, v.Extent().Blocks))
	history := &FeeHistory{Oldest: newest + 1 - blocks}
	var rewards rewardReader
	for number := history.Oldest; number <= newest; number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header, err := v.Header(ctx, number)
		if err != nil {
			return nil, err
		}
		history.add(v.Executor().Config(), header.Header)
		if len(percentiles) > 0 {
			row, err := rewards.at(ctx, v, header, percentiles)
			if err != nil {
				return nil, err
			}
			history.Rewards = append(history.Rewards, row)
		}
		if number == newest {
			history.BaseFees = append(history.BaseFees, orZero(NextBaseFee(v.Executor().Config(), header.Header)))
			history.BlobBaseFees = append(history.BlobBaseFees, nextBlobBaseFee(v.Executor().Config(), header.Header))
		}
	}
	return history, nil
}

func checkPercentiles(percentiles []float64) error {
	if len(percentiles) > maxPercentiles {
		return fmt.Errorf("%w: over the query limit %d", ErrPercentile, maxPercentiles)
	}
	for i, p := range percentiles {
		if p < 0 || p > 100 {
			return fmt.Errorf("%w: %f", ErrPercentile, p)
		}
		if i > 0 && p <= percentiles[i-1] {
			return fmt.Errorf("%w: #%d:%f >= #%d:%f", ErrPercentile, i-1, percentiles[i-1], i, p)
		}
	}
	return nil
}

// add adds a block.
func (h *FeeHistory) add(config *params.ChainConfig, header *types.Header) {
	h.BaseFees = append(h.BaseFees, orZero(header.BaseFee))
	h.BlobBaseFees = append(h.BlobBaseFees, orZero(BlobBaseFee(config, header)))
	h.GasUsedRatios = append(h.GasUsedRatios, ratio(header.GasUsed, header.GasLimit))
	var blobs float64
	if header.BlobGasUsed != nil {
		blobs = ratio(*header.BlobGasUsed, eip4844.MaxBlobGasPerBlock(config, header.Time))
	}
	h.BlobGasUsedRatios = append(h.BlobGasUsedRatios, blobs)
}

func ratio(used, limit uint64) float64 {
	if limit == 0 {
		return 0
	}
	return float64(used) / float64(limit)
}

func orZero(fee *big.Int) *big.Int {
	if fee == nil {
		return new(big.Int)
	}
	return fee
}

// NextBaseFee returns the base fee of the block after a header, nil if that block has no
// base fee.
func NextBaseFee(config *params.ChainConfig, header *types.Header) *big.Int {
	if !config.IsLondon(new(big.Int).Add(header.Number, big.NewInt(1))) {
		return nil
	}
	return eip1559.CalcBaseFee(config, header)
}

// BlobBaseFee returns the price of a unit of blob gas in a block, nil before Cancun.
func BlobBaseFee(config *params.ChainConfig, header *types.Header) *big.Int {
	if header.ExcessBlobGas == nil {
		return nil
	}
	return eip4844.CalcBlobFee(config, header)
}

// nextBlobBaseFee returns the price of a unit of blob gas in the block after a header,
// computed by the rules of the header's own fork.
func nextBlobBaseFee(config *params.ChainConfig, header *types.Header) *big.Int {
	if header.ExcessBlobGas == nil {
		return new(big.Int)
	}
	excess := eip4844.CalcExcessBlobGas(config, header, header.Time)
	return eip4844.CalcBlobFee(config, &types.Header{Number: header.Number, Time: header.Time, ExcessBlobGas: &excess})
}

// baseFeeOf returns a block's base fee, nil before London.
func baseFeeOf(header *archive.Header) *uint256.Int {
	if header.BaseFee == nil {
		return nil
	}
	fee, _ := uint256.FromBig(header.BaseFee) // verified headers do not exceed 256 bits
	return fee
}

// readTransaction decodes transaction i of a block.
func readTransaction(body *archive.Body, number uint64, i int) (evm.Transaction, error) {
	raw, err := body.Transaction(i)
	if err != nil {
		return evm.Transaction{}, err
	}
	tx, err := evm.ReadTransaction(raw)
	if err != nil {
		err = fmt.Errorf("%w: block %d, transaction %d: %v", archive.ErrCorrupt, number, i, err)
	}
	return tx, err
}
