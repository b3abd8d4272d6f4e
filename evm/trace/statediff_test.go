package trace_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"ashlar/evm/trace"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// TestStateDiffOfEmptyAccounts: before EIP-158 an account without anything can exist. A stateDiff shows
// that one begins to exist, as in OpenEthereum and Erigon, and what changes of one that did.
func TestStateDiffOfEmptyAccounts(t *testing.T) {
	homestead := &params.ChainConfig{ChainID: big.NewInt(1), HomesteadBlock: new(big.Int), Ethash: new(params.EthashConfig)}
	spurious := *homestead
	spurious.EIP150Block, spurious.EIP155Block, spurious.EIP158Block = new(big.Int), new(big.Int), new(big.Int)
	account := common.Address{0: 1, 19: 1}
	empty := types.GenesisAlloc{account: {}}
	const born, funded = `{"balance":{"+":"0x0"},"code":{"+":"0x"},"nonce":{"+":"0x0"},"storage":{}}`,
		`{"balance":{"+":"0x5"},"code":{"+":"0x"},"nonce":{"+":"0x0"},"storage":{}}`
	for name, c := range map[string]struct {
		config *params.ChainConfig
		alloc  types.GenesisAlloc
		value  int64
		want   string
	}{
		"born empty":           {homestead, types.GenesisAlloc{}, 0, born},
		"stays empty":          {homestead, empty, 0, ""},
		"was empty":            {homestead, empty, 5, `{"balance":{"*":{"from":"0x0","to":"0x5"}},"code":"=","nonce":"=","storage":{}}`},
		"born funded":          {homestead, types.GenesisAlloc{}, 5, funded},
		"touched, EIP-158":     {&spurious, types.GenesisAlloc{}, 0, ""},
		"born funded, EIP-158": {&spurious, types.GenesisAlloc{}, 5, funded},
	} {
		t.Run(name, func(t *testing.T) {
			var answer struct {
				StateDiff map[common.Address]json.RawMessage
			}
			replayCall(t, c.config, account, c.value, c.alloc, trace.Kinds{StateDiff: true}, &answer)
			if got := string(answer.StateDiff[account]); got != c.want {
				t.Errorf("the account's diff is %s, expected %s", got, c.want)
			}
		})
	}
}
