package trace_test

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"

	"ashlar/evm/execute"
	"ashlar/evm/trace"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	gethmath "github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// instructions is the part of a vmTrace that says what ran.
type instructions struct {
	Code hexutil.Bytes
	Ops  []struct {
		Op   string
		Cost uint64
		Sub  *instructions
		Ex   *struct {
			Used uint64
			Push []string
		}
	}
}

// TestVMTraceOfDelegation: the code of a frame is the one that runs, also where an account delegates
// to another, as in Erigon. The places of the instructions are in that code.
func TestVMTraceOfDelegation(t *testing.T) {
	code := []byte{0x60, 1, 0x60, 2, 0x01, 0x00} // PUSH1 1 PUSH1 2 ADD STOP
	contract, delegating := common.Address{19: 1, 0: 1}, common.Address{19: 2, 0: 1}
	got := vmTraceOf(t, delegating, types.GenesisAlloc{
		contract:   {Code: code},
		delegating: {Code: types.AddressToDelegation(contract)},
	})
	if got.Code.String() != hexutil.Encode(code) || len(got.Ops) != 4 {
		t.Errorf("the frame has code %s and %d instructions, expected that of the contract, %#x", got.Code, len(got.Ops), code)
	}
}

// TestVMTraceOfCreation: the cost of a creation includes the gas that its frame gets, as that of a
// call does. So it is in OpenEthereum, Besu and Erigon.
func TestVMTraceOfCreation(t *testing.T) {
	contract := common.Address{19: 1, 0: 1}
	got := vmTraceOf(t, contract, types.GenesisAlloc{
		contract: {Code: []byte{0x5f, 0x5f, 0x5f, 0xf0, 0x00}}, // PUSH0 PUSH0 PUSH0 CREATE STOP
	})
	if len(got.Ops) != 5 {
		t.Fatalf("the trace has %d instructions, expected 5", len(got.Ops))
	}
	before, create := got.Ops[2].Ex.Used, got.Ops[3]
	left := before - params.CreateGas
	want := params.CreateGas + left - left/64
	if create.Op != "CREATE" || create.Sub == nil || create.Cost != want {
		t.Errorf("%s costs %d, expected CREATE for %d with a frame", create.Op, create.Cost, want)
	}
	if create.Ex.Used != left {
		t.Errorf("%d gas are left after the creation, expected %d: its frame uses none", create.Ex.Used, left)
	}
}

// TestVMTraceOfDeepItems: an instruction of EIP-8024 lists all items down to the lowest that it read or wrote, as
// DUP and SWAP do.
func TestVMTraceOfDeepItems(t *testing.T) {
	amsterdam := *params.MergedTestChainConfig
	amsterdam.AmsterdamTime = new(uint64)
	const items = 240
	for _, test := range []struct {
		op        vm.OpCode
		immediate byte
		depth     int // of the lowest item; 0: the instruction fails
		upper     int // depth of the item that it is swapped with; 0: it is copied
	}{
		{op: vm.DUPN, immediate: 128, depth: 17},
		{op: vm.DUPN, immediate: 255, depth: 144},
		{op: vm.DUPN, immediate: 0, depth: 145},
		{op: vm.DUPN, immediate: 90, depth: 235},
		{op: vm.DUPN, immediate: 91}, // invalid
		{op: vm.SWAPN, immediate: 128, depth: 18, upper: 1},
		{op: vm.SWAPN, immediate: 90, depth: 236, upper: 1},
		{op: vm.EXCHANGE, immediate: 142, depth: 3, upper: 2},  // (1, 2)
		{op: vm.EXCHANGE, immediate: 128, depth: 17, upper: 2}, // (1, 16)
		{op: vm.EXCHANGE, immediate: 79, depth: 18, upper: 2},  // (1, 17)
		{op: vm.EXCHANGE, immediate: 143, depth: 30, upper: 2}, // (1, 29)
		{op: vm.EXCHANGE, immediate: 82},                       // invalid
	} {
		var code []byte
		var stack []string
		for i := range items {
			code = append(code, byte(vm.PUSH1), byte(i))
			stack = append(stack, hexutil.EncodeUint64(uint64(i)))
		}
		code = append(code, byte(test.op), test.immediate, byte(vm.STOP))
		var want []string
		if test.depth > 0 {
			low := items - test.depth
			if test.upper == 0 {
				stack = append(stack, stack[low])
			} else {
				high := items - test.upper
				stack[low], stack[high] = stack[high], stack[low]
			}
			want = stack[low:]
		}
		contract := common.Address{19: 1, 0: 1}
		var answer struct{ VMTrace instructions }
		replayCall(t, &amsterdam, contract, 0, types.GenesisAlloc{contract: {Code: code}}, trace.Kinds{VMTrace: true}, &answer)
		ops := answer.VMTrace.Ops
		if len(ops) <= items || ops[items].Op != test.op.String() {
			t.Fatalf("%v %d: %d instructions", test.op, test.immediate, len(ops))
		}
		if ex := ops[items].Ex; (ex == nil) != (want == nil) || ex != nil && !slices.Equal(ex.Push, want) {
			t.Errorf("%v %d pushes %v, expected %v", test.op, test.immediate, ex, want)
		}
	}
}

// vmTraceOf calls an account under the rules of Prague.
func vmTraceOf(t *testing.T, to common.Address, alloc types.GenesisAlloc) instructions {
	t.Helper()
	var answer struct{ VMTrace instructions }
	replayCall(t, params.MergedTestChainConfig, to, 0, alloc, trace.Kinds{VMTrace: true}, &answer)
	return answer.VMTrace
}

// replayCall decodes the trace of a call with a value, which is free.
func replayCall(t *testing.T, config *params.ChainConfig, to common.Address, value int64, alloc types.GenesisAlloc, kinds trace.Kinds, answer any) {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{Balance: big.NewInt(params.Ether)}
	tx := types.MustSignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{To: &to, Gas: 200_000, GasPrice: new(big.Int), Value: big.NewInt(value)})
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	c := recorded{Genesis: &core.Genesis{Config: config, Alloc: alloc}, Input: hexutil.Encode(raw)}
	c.Context.Number, c.Context.GasLimit = 1, 1_000_000
	if config.IsLondon(big.NewInt(1)) {
		c.Context.BaseFee = gethmath.NewHexOrDecimal256(0)
	}
	err = c.replay(t.Context(), func(r *execute.Replay) error {
		replayed, err := kinds.Transaction(t.Context(), r, config, 0, roomFor(math.MaxInt))
		if err != nil {
			return err
		}
		return json.Unmarshal(replayed.Append(nil, nil), answer)
	})
	if err != nil {
		t.Fatal(err)
	}
}
