package api_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"

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
	s := serveWithout(t, genesis, ingesttest.SourceOf(blocks))
	for _, count := range []int{0, 1} {
		request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"trace_filter","params":[{"fromBlock":"0x%x","toAddress":[%q],"count":%d}]}`, 2-count, wanted, count)
		answer, _ := limited(t, s.methods, 5000, request)
		if frames := strings.Count(string(answer), `"traceAddress"`); frames != count || strings.Contains(string(answer), "error") {
			t.Errorf("count %d: %d frames in %s", count, frames, answer)
		}
	}
}

// TestFilterOfFewBlocksIsNotCapped: a filter of at most 50 blocks returns all of their frames. graph-node
// asks for 50 blocks at a time, and again for the same ones after an error. A longer range with as many
// frames is refused, with a range that fits.
func TestFilterOfFewBlocksIsNotCapped(t *testing.T) {
	const calls, last = 10_001, 72
	caller, called := common.Address{0xcc}, common.Address{0xaa}
	genesis := madeGenesis()
	code, loop := program.New().Push(calls).Jumpdest()
	code.Call(nil, called, 0, 0, 0, 0, 0).Op(vm.POP).Push(1).Op(vm.SWAP1, vm.SUB, vm.DUP1).Push(loop).Op(vm.JUMPI)
	genesis.Alloc[caller] = types.Account{Code: code.Bytes(), Balance: new(big.Int)}
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), last, func(i int, b *core.BlockGen) {
		tx := &types.LegacyTx{Nonce: uint64(i), GasPrice: b.BaseFee(), Gas: 100_000, To: &called}
		if i == 0 || i == last-2 {
			tx.To, tx.Gas = &caller, 10_000_000
		}
		b.AddTx(types.MustSignNewTx(key, types.HomesteadSigner{}, tx))
	})
	s := serve(t, genesis, ingesttest.SourceOf(blocks))
	for _, test := range []struct {
		filter string
		frames int
		fits   string // the range in the error, if that is the answer
	}{
		{`{"fromBlock":"0x1","toBlock":"0x1"}`, calls + 1, ""},
		{`{"fromBlock":"0x1","toBlock":"0x1","fromAddress":[],"toAddress":["CALLED"],"mode":"union"}`, calls, ""},
		{`{"fromBlock":"0x1","toBlock":"0x32","fromAddress":[],"toAddress":["CALLED"],"mode":"union"}`, calls + 49, ""},
		{`{"fromBlock":"0x1","toBlock":"0x33","fromAddress":[],"toAddress":["CALLED"],"mode":"union"}`, 0, "[0x1, 0x32]"},
		{`{"fromBlock":"0x1","toBlock":"0x33"}`, 0, "[0x1, 0x32]"},
		{`{"fromBlock":"0x2","toBlock":"0x48"}`, 0, "[0x2, 0x46]"},
	} {
		filter := strings.ReplaceAll(test.filter, "CALLED", called.Hex())
		answer, _ := limited(t, s.methods, 100_000_000, `{"jsonrpc":"2.0","id":1,"method":"trace_filter","params":[`+filter+`]}`)
		refused := strings.Contains(string(answer), `"message":"query returned more than 10000 results","data":"Try with this block range `+test.fits+`."`)
		if frames := strings.Count(string(answer), `"traceAddress"`); frames != test.frames || refused != (test.fits != "") {
			t.Errorf("%s: %d frames, want %d, in %.300s", filter, frames, test.frames, answer)
		}
	}
}
