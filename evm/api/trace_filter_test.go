package api_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
)

// TestFilterEndsWithItsCount: without a trace index, a filter executes no block after the one
// with the last frame that it asks for. A later block's trace is larger than an answer.
func TestFilterEndsWithItsCount(t *testing.T) {
	genesis := madeGenesis()
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	wanted, other := common.Address{0xaa}, common.Address{0xbb}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 2, func(i int, b *core.BlockGen) {
		tx := &types.LegacyTx{Nonce: uint64(i), GasPrice: b.BaseFee(), Gas: 1_000_000, To: &wanted, Value: big.NewInt(1)}
		if i == 1 {
			tx.To, tx.Data = &other, make([]byte, 10_000)
		}
		b.AddTx(types.MustSignNewTx(key, types.HomesteadSigner{}, tx))
	})
	s := serveWithout(t, genesis, &blockSource{blocks})
	for _, count := range []int{0, 1} {
		request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"trace_filter","params":[{"fromBlock":"0x%x","toAddress":[%q],"count":%d}]}`, 2-count, wanted, count)
		answer, _ := limited(t, s.methods, 5000, request)
		if frames := strings.Count(string(answer), `"traceAddress"`); frames != count || strings.Contains(string(answer), "error") {
			t.Errorf("count %d: %d frames in %s", count, frames, answer)
		}
	}
}

// TestFilterOfOneBlockIsNotCapped: a filter of one block returns all of its frames, as trace_block
// does, because no shorter range can be asked for; graph-node asks for single blocks. A longer range
// with as many frames is refused.
func TestFilterOfOneBlockIsNotCapped(t *testing.T) {
	const calls = 10_001
	caller, called := common.Address{0xcc}, common.Address{0xaa}
	genesis := madeGenesis()
	code, loop := program.New().Push(calls).Jumpdest()
	code.Call(nil, called, 0, 0, 0, 0, 0).Op(vm.POP).Push(1).Op(vm.SWAP1, vm.SUB, vm.DUP1).Push(loop).Op(vm.JUMPI)
	genesis.Alloc[caller] = types.Account{Code: code.Bytes(), Balance: new(big.Int)}
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 2, func(i int, b *core.BlockGen) {
		tx := &types.LegacyTx{Nonce: uint64(i), GasPrice: b.BaseFee(), Gas: 10_000_000, To: &caller}
		if i == 1 {
			tx.To = &called
		}
		b.AddTx(types.MustSignNewTx(key, types.HomesteadSigner{}, tx))
	})
	s := serve(t, genesis, &blockSource{blocks})
	for _, test := range []struct {
		filter string
		frames int
	}{
		{`{"fromBlock":"0x1","toBlock":"0x1"}`, calls + 1},
		{`{"fromBlock":"0x1","toBlock":"0x1","fromAddress":[],"toAddress":["` + called.Hex() + `"],"mode":"union"}`, calls},
		{`{"fromBlock":"0x1","toBlock":"0x2"}`, 0},
	} {
		answer, _ := limited(t, s.methods, 100_000_000, `{"jsonrpc":"2.0","id":1,"method":"trace_filter","params":[`+test.filter+`]}`)
		refused := strings.Contains(string(answer), `"message":"query returned more than 10000 results","data":"Try with this block range [0x1, 0x1]."`)
		if frames := strings.Count(string(answer), `"traceAddress"`); frames != test.frames || refused != (test.frames == 0) {
			t.Errorf("%s: %d frames, want %d, in %.300s", test.filter, frames, test.frames, answer)
		}
	}
}
