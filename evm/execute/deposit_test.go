package execute

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

func TestCheckDeposits(t *testing.T) {
	config := &params.ChainConfig{DepositContractAddress: common.Address{1}}
	event := func(change func(*types.Log)) []*types.Log {
		log := &types.Log{Address: common.Address{1}, Topics: []common.Hash{depositEvent}, Data: make([]byte, depositBytes)}
		for offset, word := range depositWords {
			word := uint256.NewInt(word).Bytes32()
			copy(log.Data[offset:], word[:])
		}
		change(log)
		return []*types.Log{{}, log}
	}
	for name, test := range map[string]struct {
		change func(*types.Log)
		ok     bool
	}{
		"as the contract writes it": {func(*types.Log) {}, true},
		"short":                     {func(l *types.Log) { l.Data = l.Data[1:] }, false},
		"other offset":              {func(l *types.Log) { l.Data[31]++ }, false},
		"offset above 64 bits":      {func(l *types.Log) { l.Data[32] = 1 }, false},
		"other length":              {func(l *types.Log) { l.Data[191]-- }, false},
		"amount":                    {func(l *types.Log) { l.Data[352]++ }, true},
		"another contract's":        {func(l *types.Log) { l.Address[0], l.Data = 2, nil }, true},
		"another event":             {func(l *types.Log) { l.Topics[0][0]++; l.Data = nil }, true},
	} {
		if err := checkDeposits(config, event(test.change)); (err == nil) != test.ok {
			t.Errorf("%s: %v, want success %t", name, err, test.ok)
		}
	}
}
