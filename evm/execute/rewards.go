package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Reward is what a block pays for having been mined.
type Reward struct {
	Author common.Address
	Uncle  bool // it is for an uncle of the block
	Value  uint256.Int
}

// Rewards are what a block with these uncles pays, the block's own first: none where
// blocks are not mined by proof of work.
func (e *Executor) Rewards(header *types.Header, uncles []*types.Header) []Reward {
	if header.Difficulty.Sign() == 0 || header.Number.Sign() == 0 || e.config.Clique != nil {
		return nil
	}
	base := ethash.FrontierBlockReward
	if e.config.IsByzantium(header.Number) {
		base = ethash.ByzantiumBlockReward
	}
	if e.config.IsConstantinople(header.Number) {
		base = ethash.ConstantinopleBlockReward
	}
	rewards := []Reward{{Author: header.Coinbase, Value: *base}}
	for _, uncle := range uncles {
		// An uncle gets an eighth less for each block that it is older, and its
		// including a 32nd.
		reward := Reward{Author: uncle.Coinbase, Uncle: true}
		age := header.Number.Uint64() - uncle.Number.Uint64()
		reward.Value.Mul(base, uint256.NewInt(8-min(8, age)))
		reward.Value.Rsh(&reward.Value, 3)
		rewards = append(rewards, reward)
		rewards[0].Value.Add(&rewards[0].Value, new(uint256.Int).Rsh(base, 5))
	}
	return rewards
}
