package execute

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// actor returns one of the accounts that random code knows; some are absent at first.
func actor(rng *rand.Rand) common.Address { return common.Address{18: 1, 19: byte(rng.IntN(6))} }

// randomCode changes and reads state, calls, creates and reverts, and returns what it has seen.
func randomCode(rng *rand.Rand, depth int) []byte {
	p := program.New().Push(0) // the sum of all that it sees
	small := func() int { return rng.IntN(4) }
	for range 2 + rng.IntN(14) {
		switch to, gas := actor(rng), uint256.NewInt(rng.Uint64N(60_000)); rng.IntN(16) {
		case 0, 1:
			p.Sstore(small(), small())
		case 2, 3:
			p.Push(small()).Op(vm.SLOAD, vm.ADD)
		case 4:
			p.Push(small()).Push(small()).Op(vm.TSTORE)
		case 5:
			p.Push(small()).Op(vm.TLOAD, vm.ADD)
		case 6, 7:
			ops := []vm.OpCode{vm.BALANCE, vm.EXTCODESIZE, vm.EXTCODEHASH}
			p.Push(to).Op(ops[rng.IntN(3)], vm.ADD)
		case 8:
			p.Op([]vm.OpCode{vm.GAS, vm.SELFBALANCE, vm.RETURNDATASIZE}[rng.IntN(3)], vm.ADD)
		case 9, 10:
			p.Call(gas, to, small(), 0, 32, 0, 32).Push(0).Op(vm.MLOAD, vm.ADD, vm.ADD)
		case 11:
			p.StaticCall(gas, to, 0, 32, 0, 32).Push(0).Op(vm.MLOAD, vm.ADD, vm.ADD)
		case 12:
			p.DelegateCall(gas, to, 0, 32, 0, 32).Push(0).Op(vm.MLOAD, vm.ADD, vm.ADD)
		case 13:
			if depth > 0 {
				p.Create2(program.New().ReturnViaCodeCopy(randomCode(rng, depth-1)).Bytes(), small()).Op(vm.DUP1, vm.EXTCODEHASH, vm.ADD, vm.ADD)
			}
		case 14:
			p.Push(0).Push(0).Op(vm.LOG0)
		case 15:
			if rng.IntN(4) == 0 {
				p.Selfdestruct(to)
			}
		}
	}
	p.Push(0).Op(vm.MSTORE)
	if rng.IntN(5) == 0 {
		return p.Push(32).Push(0).Op(vm.REVERT).Bytes()
	}
	return p.Return(0, 32).Bytes()
}

// TestScratchCalls runs random messages on the state for calls and on go-ethereum's, under
// the rules of several forks, and compares what became of them.
func TestScratchCalls(t *testing.T) {
	homestead := &params.ChainConfig{ChainID: big.NewInt(1), HomesteadBlock: new(big.Int)}
	london, shanghai, amsterdam := *osakaConfig(), *osakaConfig(), *osakaConfig()
	for _, c := range []*params.ChainConfig{&london, &shanghai} {
		c.CancunTime, c.PragueTime, c.OsakaTime = nil, nil, nil
	}
	london.ShanghaiTime = nil
	amsterdam.AmsterdamTime = new(uint64)
	ended := make(map[bool]int)
	for name, config := range map[string]*params.ChainConfig{"Homestead": homestead, "London": &london, "Shanghai": &shanghai, "Osaka": osakaConfig(), "Amsterdam": &amsterdam} {
		t.Run(name, func(t *testing.T) {
			executor, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(200) {
				if got, want := runRandomly(t, executor, seed, false), runRandomly(t, executor, seed, true); !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d: got\n%v, want\n%v", seed, got, want)
				} else {
					ended[got[0].err == ""]++
				}
			}
		})
	}
	if ended[true] < 100 || ended[false] < 100 {
		t.Errorf("messages that succeeded and failed: %v", ended)
	}
}

// ran is what became of a message.
type ran struct {
	err, output string
	gas, most   uint64
}

// runRandomly runs the random messages of a seed on one simulation.
func runRandomly(t *testing.T, executor *Executor, seed uint64, lasting bool) (all []ran) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld()
	for range 4 {
		w.put(actor(rng), rng.Uint64N(4), randomCode(rng, 2), word(rng.Uint64N(3)), word(rng.Uint64N(3)))
	}
	w.put(actor(rng), 1, nil)
	overrides := StateOverrides{}
	if rng.IntN(2) == 0 {
		overrides[actor(rng)] = AccountOverride{State: map[common.Hash]common.Hash{word(1): word(2)}, Nonce: ptr[uint64](rng.Uint64N(2))}
		overrides[actor(rng)] = AccountOverride{Code: ptr(randomCode(rng, 1)), StateDiff: map[common.Hash]common.Hash{word(0): word(rng.Uint64N(3))}, Balance: uint256.NewInt(3)}
	}
	at := w.at()
	if executor.config.CancunTime == nil {
		at.Header.ExcessBlobGas, at.Header.BlobGasUsed = nil, nil
	}
	s := executor.newSimulation(t.Context(), at)
	defer s.release()
	s.lasting = lasting
	err := s.do(CallOptions{State: overrides}, func(s *simulation) error {
		for range 3 {
			m := &Message{From: actor(rng), Gas: ptr(rng.Uint64N(400_000)), Value: uint256.NewInt(rng.Uint64N(3))}
			if to := actor(rng); rng.IntN(8) > 0 {
				m.To = &to
			} else {
				m.Data = randomCode(rng, 2)
			}
			message, err := s.message(m)
			if err != nil {
				return err
			}
			result, err := s.try(message, nil)
			all = append(all, describeRan(result, err))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func describeRan(result *core.ExecutionResult, err error) ran {
	if err != nil {
		return ran{err: err.Error()}
	}
	failed := ""
	if result.Err != nil {
		failed = result.Err.Error()
	}
	return ran{failed, fmt.Sprintf("%x", result.ReturnData), result.UsedGas, result.MaxUsedGas}
}
