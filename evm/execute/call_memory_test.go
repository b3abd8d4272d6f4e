package execute

import (
	"context"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/params"
)

// TestCallMemory has calls grow whatever a call can grow, with all the gas there
// is, and looks at what is allocated when they end.
func TestCallMemory(t *testing.T) {
	counted := func(ops ...vm.OpCode) []byte {
		return looping(func(p *program.Program) { p.Op(ops...) })
	}
	// The gas that is left is another number each time.
	tests := []struct {
		name string
		code []byte
		ends string // how the call ends
	}{
		{"transient slots", counted(vm.GAS, vm.DUP1, vm.TSTORE), errCallMemory.Error()},
		{"one slot again and again", counted(vm.GAS, vm.PUSH0, vm.SSTORE), errCallMemory.Error()},
		{"logs", counted(vm.PUSH0, vm.PUSH0, vm.LOG0), errCallMemory.Error()},
		{"large logs", counted(vm.GAS, vm.PUSH2, 0xff, 0xff, vm.PUSH0, vm.LOG1), "out of gas"},
		{"slots that are read", counted(vm.GAS, vm.SLOAD, vm.POP), "out of gas"},
		{"slots that are warmed without the gas to read them", counted(vm.GAS, vm.PUSH0, vm.MSTORE,
			vm.PUSH0, vm.PUSH0, vm.PUSH1, 32, vm.PUSH0, vm.PUSH1, 0xee, vm.PUSH1, 120, vm.STATICCALL, vm.POP), errCallMemory.Error()},
		{"accounts that are read", counted(vm.GAS, vm.BALANCE, vm.POP), "out of gas"},
		{"codes that are read", counted(vm.PUSH1, 1, vm.PUSH0, vm.PUSH0, vm.GAS, vm.EXTCODECOPY), errCallMemory.Error()},
		{"sizes of codes that are read", counted(vm.GAS, vm.EXTCODESIZE, vm.POP), "out of gas"},
		{"transient slots without a jump", jumpless(vm.GAS, vm.DUP1, vm.TSTORE), errCallMemory.Error()},
	}
	e := newCaller(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.put(contract, 1, test.code)
			w.put(common.Address{19: 0xee}, 1, program.New().Op(vm.PUSH0, vm.CALLDATALOAD, vm.SLOAD).Bytes())
			at := w.at()
			at.State = crowd{w}
			s := e.newSimulation(t.Context(), at)
			checkCallMemory(t, s, CallOptions{}, test.ends)
		})
	}
}

// checkCallMemory calls the contract with all the gas there is, and looks at how the call ends and
// at what the simulation holds then. The caller must not use the simulation any more.
func checkCallMemory(t *testing.T, s *simulation, options CallOptions, ends string) {
	t.Helper()
	options.Time = time.Hour // so that a call ends for another reason, however busy the machine is
	err := s.do(options, func(s *simulation) error {
		message, err := s.message(&Message{To: &contract, Gas: ptr[uint64](math.MaxUint64)})
		if err != nil {
			return err
		}
		result, err := s.run(message, nil)
		if err != nil {
			return err
		}
		return outcomeError(result)
	})
	if got := describe(err); !strings.Contains(got, ends) {
		t.Errorf("ended with %q, want %q", got, ends)
	}
	if kept := heldBy(&s); kept > callMemory {
		t.Errorf("it holds %d bytes, want %d at most", kept, callMemory)
	}
}

// TestFrameMemory has calls address all the memory that their gas pays for.
func TestFrameMemory(t *testing.T) {
	const limit = "execution aborted (memory limit of 256 MiB)"
	store := func(at uint64) []byte { return program.New().Push(1).Push(at).Op(vm.MSTORE).Bytes() }
	deeper := func(size uint64) []byte { // each frame addresses so much and calls itself
		return program.New().Append(store(size)).Call(nil, contract, 0, 0, 0, 0, 0).Bytes()
	}
	many := func(n int, to common.Address) []byte {
		p := program.New()
		for range n {
			p.Call(nil, to, 0, 0, 0, 0, 0)
		}
		return p.Bytes()
	}
	callee := common.Address{19: 0xee}
	tests := []struct {
		name string
		code []byte
		gas  uint64
		ends string
	}{
		{"one frame within the limit", store(255 << 20), math.MaxUint64, ""},
		{"one frame over it", store(257 << 20), math.MaxUint64, limit},
		{"one operation that addresses 64 GiB", store(64 << 30), math.MaxUint64, limit},
		{"many frames over it", deeper(3 << 20), math.MaxUint64, limit},
		{"the output of a call", program.New().Call(nil, common.Address{19: 4}, 0, 0, 0, 0, 300<<20).Bytes(), math.MaxUint64, limit},
		{"frames that end, one after the other", many(20, callee), math.MaxUint64, ""},
		{"less gas than needs the meter", store(257 << 20), 2_000_000_000, "out of gas"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.put(contract, 1, test.code)
			w.put(callee, 1, store(20<<20))
			at := w.at()
			at.Header.GasLimit = math.MaxUint64
			_, err := newCaller(t).Call(t.Context(), at, &Message{To: &contract, Gas: &test.gas}, CallOptions{Time: time.Minute})
			if got := describe(err); got != test.ends {
				t.Errorf("ended with %q, want %q", got, test.ends)
			}
		})
	}
}

// crowd is a world in which every other address has a contract, each with as long
// a code of its own as there may be.
type crowd struct{ *world }

func (c crowd) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	account, err := c.world.Account(ctx, address)
	if account == nil && err == nil {
		account = types.NewEmptyStateAccount()
		account.Nonce, account.CodeHash = 1, address[:]
	}
	return account, err
}

func (c crowd) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	code, err := c.world.Code(ctx, hash)
	if code == nil && err == nil {
		code = make([]byte, params.MaxCodeSize)
	}
	return code, err
}

// countedCodes is a crowd that counts the codes that are read. They share their memory, so that a
// simulation on a busy machine has time to read all of them.
type countedCodes struct {
	crowd
	long []byte
	read int
}

func (c *countedCodes) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	c.read++
	code, err := c.world.Code(ctx, hash)
	if code == nil && err == nil {
		code = c.long
	}
	return code, err
}

// TestSimulationMemory simulates calls in two blocks that together read more codes than the state may
// keep.
func TestSimulationMemory(t *testing.T) {
	w := newWorld()
	w.put(contract, 1, looping(func(p *program.Program) { p.Op(vm.PUSH1, 1, vm.PUSH0, vm.PUSH0, vm.GAS, vm.EXTCODECOPY) }))
	codes := &countedCodes{crowd: crowd{w}, long: make([]byte, params.MaxCodeSize)}
	blocks := []BlockCalls{{Calls: []*Message{{To: &contract, Gas: ptr[uint64](12_000_000)}}}, {Calls: []*Message{{To: &contract, Gas: ptr[uint64](12_000_001)}}}}
	err := newCaller(t).SimulateBlocks(t.Context(), Parent{Header: w.at().Header, State: codes}, blocks, SimulationOptions{},
		func(*SimulatedBlock) error { return nil })
	if got := describe(err); got != errCallMemory.Error() {
		t.Errorf("ended with %q, want %q", got, errCallMemory)
	}
	if most := callMemory/params.MaxCodeSize + 10; codes.read > most { // some are read until it ends
		t.Errorf("%d codes were read, want %d at most", codes.read, most)
	}
}

// TestReadsOfAbsentAccounts asks again and again for an account that does not exist, of which the state keeps
// nothing.
func TestReadsOfAbsentAccounts(t *testing.T) {
	w := newWorld()
	w.put(contract, 1, looping(func(p *program.Program) { p.Push(0xabc).Op(vm.EXTCODESIZE, vm.POP) }))
	for _, address := range []common.Address{params.WithdrawalQueueAddress, params.ConsolidationQueueAddress} {
		w.put(address, 0, []byte{byte(vm.STOP)})
	}
	e := newCaller(t)
	call := BlockCalls{Calls: []*Message{{To: &contract, Gas: ptr[uint64](24_000_000)}}}
	err := e.SimulateBlocks(t.Context(), Parent{Header: w.at().Header, State: w}, []BlockCalls{call}, SimulationOptions{},
		func(*SimulatedBlock) error { return nil })
	if err != nil {
		t.Errorf("simulate: %v", err)
	}
	err = e.CallBundles(t.Context(), w.at(), []Bundle{{Calls: call.Calls}}, CallOptions{}, func(_, _ int, result BundleResult) error {
		if got := describe(result.Err); got == errCallMemory.Error() {
			t.Errorf("a call of a bundle ended with %q", got)
		}
		return nil
	})
	if err != nil {
		t.Errorf("call bundles: %v", err)
	}
}

// TestSimulationMemoryOfSystemCalls simulates blocks whose system calls, which use none of the gas of the
// simulation, run code of the client that logs as much as it can.
func TestSimulationMemoryOfSystemCalls(t *testing.T) {
	p := program.New()
	_, start := p.Jumpdest()
	code := p.Push(128<<10).Op(vm.PUSH0, vm.LOG0).Push(2_000_000).Op(vm.GAS, vm.GT).Push(start).Op(vm.JUMPI).Bytes()
	w := newWorld()
	for _, address := range []common.Address{params.WithdrawalQueueAddress, params.ConsolidationQueueAddress} {
		w.put(address, 0, []byte{byte(vm.STOP)})
	}
	blocks := make([]BlockCalls, MaxSimulatedBlocks)
	blocks[0].State = StateOverrides{params.BeaconRootsAddress: {Code: &code}, params.HistoryStorageAddress: {Code: &code}}
	made := 0
	err := newCaller(t).SimulateBlocks(t.Context(), Parent{Header: w.at().Header, State: w}, blocks, SimulationOptions{},
		func(*SimulatedBlock) error { made++; return nil })
	if got := describe(err); got != errCallMemory.Error() {
		t.Errorf("ended after %d blocks with %q, want %q", made, got, errCallMemory)
	}
}

// TestSimulationReads reads accounts and slots for a simulation until its memory is used up.
func TestSimulationReads(t *testing.T) {
	w := newWorld()
	w.put(contract, 1, nil, word(7))
	for name, read := range map[string]func(*simulationReader) error{
		"account": func(r *simulationReader) error { _, err := r.Account(contract); return err },
		"slot":    func(r *simulationReader) error { _, err := r.Storage(contract, word(0)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			memory := &memoryMeter{read: callMemory - 2000}
			r := &simulationReader{newAccountMeter(newDatabase(t.Context(), Parent{State: w}, false), memory)}
			reads := 0
			for read(r) == nil && reads < 10 {
				reads++
			}
			if reads == 0 || reads == 10 || memory.exceeded == nil {
				t.Errorf("%d were read, and the limit is exceeded: %v", reads, memory.exceeded)
			}
		})
	}
}

// heldBy drops a simulation and says how much memory, in bytes, it held.
func heldBy(s **simulation) int64 {
	var with, without runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&with)
	*s = nil
	runtime.GC()
	runtime.ReadMemStats(&without)
	return int64(with.HeapAlloc) - int64(without.HeapAlloc)
}

// jumpless is code that does something over and over and calls itself, without a jump.
func jumpless(ops ...vm.OpCode) []byte {
	p := program.New()
	for range 3000 {
		p.Op(ops...)
	}
	return p.Call(nil, contract, 0, 0, 0, 0, 0).Bytes()
}
