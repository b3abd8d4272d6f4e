package query

import (
	"context"
	"math/big"
	"slices"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// Parameters of tip suggestions, as in geth's oracle.
const (
	tipBlocks     = 20                     // newest blocks to sample; up to twice as many if they are nearly empty
	tipSamples    = 3                      // lowest tips sampled from each block
	tipPercentile = 60                     // of the samples
	tipIgnored    = 2 * params.Wei         // lower tips are not sampled
	tipDefault    = params.GWei / 1000     // sample of a block without any
	maxTip        = 500 * int(params.GWei) // maximum suggestion
)

// TipOracle suggests a tip with which a transaction is likely to be included within a few
// blocks. It caches the last suggestion. It is safe for concurrent use, and its zero value
// is ready to use.
//
// Unlike geth's, a suggestion depends only on the blocks of the view, not on earlier
// suggestions.
type TipOracle struct{ last atomic.Pointer[suggestedTip] }

type suggestedTip struct {
	head common.Hash
	tip  uint256.Int
}

// Suggest returns the tip to offer at the view's head.
func (o *TipOracle) Suggest(ctx context.Context, v *View) (*big.Int, error) {
	if last := o.last.Load(); last != nil && last.head == v.head.Hash {
		return last.tip.ToBig(), nil
	}
	samples, err := tipSamplesOf(ctx, v)
	if err != nil {
		return nil, err
	}
	tip := *uint256.NewInt(tipDefault)
	if len(samples) > 0 {
		slices.SortFunc(samples, func(a, b uint256.Int) int { return a.Cmp(&b) })
		tip = samples[(len(samples)-1)*tipPercentile/100]
	}
	if most := uint256.NewInt(uint64(maxTip)); tip.Gt(most) {
		tip = *most
	}
	o.last.Store(&suggestedTip{head: v.head.Hash, tip: tip})
	return tip.ToBig(), nil
}

// tipSamplesOf collects samples from the newest blocks, except for the genesis. For each
// block with at most one sample, one more block is examined.
func tipSamplesOf(ctx context.Context, v *View) ([]uint256.Int, error) {
	var samples []uint256.Int
	buffer := make([]byte, 0, rowBytes)
	number, waiting := v.head.Number, tipBlocks
	for ; waiting > 0 && number > 0; number-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		waiting--
		sampled, err := sampleTips(ctx, v, number, buffer)
		if err != nil {
			return nil, err
		}
		if len(sampled) == 0 {
			sampled = append(sampled, *uint256.NewInt(tipDefault))
		}
		if len(sampled) == 1 && len(samples)+1+waiting < 2*tipBlocks {
			waiting++
		}
		samples = append(samples, sampled...)
	}
	return samples, nil
}

// sampleTips returns the lowest tips of a block, without those below tipIgnored and those of
// the beneficiary's own transactions.
func sampleTips(ctx context.Context, v *View, number uint64, buffer []byte) ([]uint256.Int, error) {
	header, err := v.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	body, err := v.Body(ctx, number, buffer)
	if err != nil {
		return nil, err
	}
	baseFee := baseFeeOf(header)
	var tips []uint256.Int
	for i := range body.Len() {
		tx, err := readTransaction(body, number, i)
		if err != nil {
			return nil, err
		}
		tip := tx.EffectiveTip(baseFee)
		if !tip.LtUint64(tipIgnored) && body.Sender(i) != header.Coinbase {
			tips = append(tips, tip)
		}
	}
	slices.SortFunc(tips, func(a, b uint256.Int) int { return a.Cmp(&b) })
	return tips[:min(len(tips), tipSamples)], nil
}
