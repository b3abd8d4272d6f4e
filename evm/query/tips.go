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

// How tips are suggested: the figures of geth's oracle.
const (
	tipBlocks     = 20                     // newest blocks that are looked at; up to twice as many where they are nearly empty
	tipSamples    = 3                      // lowest tips that are taken from each
	tipPercentile = 60                     // of the samples
	tipIgnored    = 2 * params.Wei         // a tip below this is no sample
	tipDefault    = params.GWei / 1000     // stands for a block without a sample
	tipMost       = 500 * int(params.GWei) // no more is suggested
)

// TipOracle suggests a tip with which a transaction is likely to be taken into
// one of the next blocks. It remembers what it last said, and may be used from
// many goroutines at once. Its zero value is ready.
//
// What it suggests depends on the view's blocks alone, not, as in geth, on what
// was asked before.
type TipOracle struct{ last atomic.Pointer[suggestedTip] }

type suggestedTip struct {
	head common.Hash
	tip  uint256.Int
}

// Suggest returns the tip to offer on top of the view's head.
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
	if most := uint256.NewInt(uint64(tipMost)); tip.Gt(most) {
		tip = *most
	}
	o.last.Store(&suggestedTip{head: v.head.Hash, tip: tip})
	return tip.ToBig(), nil
}

// tipSamplesOf collects samples from the newest blocks, the genesis left out. A
// block that gives one sample at most has an older one looked at as well.
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

// sampleTips returns the lowest tips in a block that are worth a sample, without
// those of the beneficiary's own transactions.
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
