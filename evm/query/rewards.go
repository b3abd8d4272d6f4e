package query

import (
	"context"
	"fmt"
	"slices"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/holiman/uint256"
)

// gasTip is the tip of a transaction per unit of gas, and the gas that it used.
type gasTip struct {
	tip     uint256.Int
	gasUsed uint64
}

// cachedTips is the number of blocks whose tips are cached, at 40 bytes per transaction: 16
// MB for blocks of 200 transactions. Wallets repeatedly request the history of the last few
// blocks with different percentiles. The cache is larger than maxFeeBlocks: repeating a scan
// that exceeds an LRU cache never hits.
const cachedTips = 2 * maxFeeBlocks

// tipsCache holds the tips of blocks in ascending order, by block hash. Its values are
// immutable.
type tipsCache = lru.Cache[common.Hash, []gasTip]

// rewardReader reads the tips of blocks. It is for use by one goroutine.
type rewardReader struct {
	body, receipts []byte // empty buffers for rows; nil until needed
}

// rowBytes is enough for nearly every block's body or receipts.
const rowBytes = 128 << 10

// at returns the tips at percentiles of the gas used in a block.
func (r *rewardReader) at(ctx context.Context, v *View, header *archive.Header, percentiles []float64) ([]uint256.Int, error) {
	row := make([]uint256.Int, len(percentiles))
	tips, err := r.tips(ctx, v, header)
	if err != nil || len(tips) == 0 {
		return row, err
	}
	i, sum := 0, tips[0].gasUsed
	for p, percentile := range percentiles {
		threshold := uint64(float64(header.GasUsed) * percentile / 100)
		for sum < threshold && i < len(tips)-1 {
			i++
			sum += tips[i].gasUsed
		}
		row[p] = tips[i].tip
	}
	return row, nil
}

// tips returns the tips of a block's transactions in ascending order.
func (r *rewardReader) tips(ctx context.Context, v *View, header *archive.Header) ([]gasTip, error) {
	pending := v.IsPending(header.Number.Uint64()) // not cached: a pending block has no hash
	if !pending {
		if tips, ok := v.chain.tips.Get(header.Hash); ok {
			return tips, nil
		}
	}
	tips, err := r.load(ctx, v, header)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(tips, func(a, b gasTip) int { return a.tip.Cmp(&b.tip) })
	if !pending {
		v.chain.tips.Add(header.Hash, tips)
	}
	return tips, nil
}

// load reads the tips of a block in the order of its transactions.
func (r *rewardReader) load(ctx context.Context, v *View, header *archive.Header) ([]gasTip, error) {
	if r.body == nil {
		r.body, r.receipts = make([]byte, 0, rowBytes), make([]byte, 0, rowBytes)
	}
	number := header.Number.Uint64()
	body, err := v.Body(ctx, number, r.body)
	if err != nil {
		return nil, err
	}
	receipts, err := v.Receipts(ctx, number, r.receipts)
	if err != nil {
		return nil, err
	}
	if receipts.Len() != body.Len() {
		return nil, fmt.Errorf("%w: block %d has %d receipts for %d transactions", archive.ErrCorrupt, number, receipts.Len(), body.Len())
	}
	baseFee := baseFeeOf(header)
	tips := make([]gasTip, 0, body.Len())
	var before uint64
	for i := range body.Len() {
		tx, err := readTransaction(body, number, i)
		if err != nil {
			return nil, err
		}
		receipt, err := receipts.Receipt(i)
		if err != nil {
			return nil, err
		}
		tips = append(tips, gasTip{tip: tx.EffectiveTip(baseFee), gasUsed: receipt.CumulativeGasUsed - before})
		before = receipt.CumulativeGasUsed
	}
	return tips, nil
}
