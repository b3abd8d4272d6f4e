package execute

import (
	"math/big"
	"slices"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// BenchmarkRecord runs transactions that use 10,000,000 gas, with and without recording
// their traces: one that only computes, and one that only calls.
//
//	go test ./evm/execute -run '^$' -bench Record
func BenchmarkRecord(b *testing.B) {
	callee := common.HexToAddress("0xca11ee")
	loop := func(body *program.Program) []byte {
		return program.New().Append([]byte{byte(vm.JUMPDEST)}).Append(body.Bytes()).Jump(0).Bytes()
	}
	for name, code := range map[string][]byte{
		"computing": loop(program.New().Push(1).Push(2).Op(vm.ADD).Push(3).Op(vm.MUL, vm.POP)),
		"calling":   loop(program.New().StaticCall(nil, callee, 0, 0, 0, 0).Op(vm.POP)),
	} {
		for recorded, on := range map[string]bool{"/plain": false, "/recorded": true} {
			b.Run(name+recorded, func(b *testing.B) {
				for range b.N {
					runRecorded(b, code, callee, on, func(m *machine, seen *collidingState) { m.evm.StateDB = seen })
				}
			})
		}
	}
}

// TestCodeRunsWithoutTracer: while code runs, the EVM has no tracer that slows it down, and
// all calls are recorded all the same.
func TestCodeRunsWithoutTracer(t *testing.T) {
	callee := common.HexToAddress("0xca11ee")
	code := program.New().Push(0).Op(vm.SLOAD, vm.POP).StaticCall(nil, callee, 0, 0, 0, 0).Push(0).Op(vm.SLOAD, vm.POP, vm.STOP).Bytes()
	watch := &tracerWatch{}
	traces := runRecorded(t, code, callee, true, func(m *machine, seen *collidingState) {
		watch.collidingState, watch.machine = seen, m.evm
		m.evm.StateDB = watch
	})
	if want := []bool{false, false}; !slices.Equal(watch.traced, want) {
		t.Errorf("the EVM has a tracer at the reads of slots: %v, want %v", watch.traced, want)
	}
	if len(traces) != 2 || traces[1].To != callee {
		t.Errorf("the traces are %v", traces)
	}
}

// tracerWatch notes at each read of a slot whether the EVM has a tracer.
type tracerWatch struct {
	*collidingState
	machine *vm.EVM
	traced  []bool
}

func (w *tracerWatch) GetState(address common.Address, slot common.Hash) common.Hash {
	w.traced = append(w.traced, w.machine.Config.Tracer != nil)
	return w.collidingState.GetState(address, slot)
}

// runRecorded runs a transaction that calls code, and returns its traces. use makes the EVM
// use a state.
func runRecorded(b testing.TB, code []byte, callee common.Address, record bool, use func(*machine, *collidingState)) []evm.Trace {
	b.Helper()
	config := *params.MergedTestChainConfig
	config.AmsterdamTime, config.UBTTime = nil, nil
	e, err := New(&config, RecordTraces(record))
	if err != nil {
		b.Fatal(err)
	}
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		b.Fatal(err)
	}
	w, contract := newWorld(), common.HexToAddress("0xc0de")
	w.put(crypto.PubkeyToAddress(key.PublicKey), params.Ether, nil)
	w.put(contract, 0, code)
	w.put(callee, 0, []byte{byte(vm.STOP)})
	header := w.at().Header
	parent := Parent{Header: &types.Header{Number: big.NewInt(999), Root: types.EmptyRootHash}, State: w}
	statedb, err := state.New(types.EmptyRootHash, newDatabase(b.Context(), parent, true))
	if err != nil {
		b.Fatal(err)
	}
	m := e.newMachine(b.Context(), parent, header, new(readFailure))
	defer m.release()
	m.recorder = e.newTraceRecorder(m.evm)
	tx := types.MustSignNewTx(key, m.signer, &types.LegacyTx{GasPrice: big.NewInt(10), Gas: 10_000_000, To: &contract})
	seen := m.use(statedb)
	use(m, seen)
	ran, err := m.transact(seen, core.NewGasPool(header.GasLimit), tx, 0)
	if err != nil {
		b.Fatal(err)
	}
	if record != (len(ran.traces) > 0) {
		b.Fatalf("%d traces were recorded", len(ran.traces))
	}
	return ran.traces
}
