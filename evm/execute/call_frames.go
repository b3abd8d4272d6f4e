package execute

import (
	"errors"

	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// frameMemory is how many bytes all frames of a call that are open at once may address. An
// operation that needs more ends the call.
//
// The memory of a frame costs the square of its size: w words cost w²/512, and a call
// passes on 63/64 of its gas at most, so that all open frames hold at most √(64·512·gas)
// words together. Before EIP-150 all gas is passed on, 1024 frames deep: √(1024·512·gas). A
// call with no more gas than boundedGas cannot exceed the limit (105 MiB for 360 million,
// ten times a block of 36 million) and runs without the meter, which makes every operation
// slower.
const frameMemory = 256 << 20

// boundedGas returns the gas with which no call can address more than frameMemory.
func boundedGas(rules params.Rules) uint64 {
	if rules.IsEIP150 {
		return 2_000_000_000
	}
	return 50_000_000
}

var errFrameMemory = errors.New("execution aborted (memory limit of 256 MiB)")

// frameMeter adds up the memory of the open frames of a call.
type frameMeter struct {
	memory *memoryMeter
	frames []uint64 // bytes of each open frame, from the outermost
	total  uint64
}

// watch returns hooks that meter a call, in front of other hooks, which may be nil.
func (f *frameMeter) watch(others *tracing.Hooks) *tracing.Hooks {
	return beforeOpcodes(others, func(_ uint64, op byte, _, _ tracing.Gas, scope tracing.OpContext, _ []byte, depth int, err error) {
		if err == nil {
			f.enter(depth, max(uint64(len(scope.MemoryData())), addressed(vm.OpCode(op), scope.StackData())))
		}
	})
}

// beforeOpcodes returns hooks that call first before each instruction, and then other hooks, which may be nil.
func beforeOpcodes(others *tracing.Hooks, first tracing.OpcodeHookV2) *tracing.Hooks {
	hooks := new(tracing.Hooks)
	if others != nil {
		*hooks = *others
	}
	hooks.OnOpcode = nil
	hooks.OnOpcodeV2 = func(pc uint64, op byte, gas, cost tracing.Gas, scope tracing.OpContext, data []byte, depth int, err error) {
		first(pc, op, gas, cost, scope, data, depth, err)
		others.EmitOpcode(pc, op, gas, cost, scope, data, depth, err)
	}
	return hooks
}

// enter takes the size that the frame at a depth, from 1, has after its next operation. If all
// frames together are too large, it ends the run before the EVM grows the memory.
func (f *frameMeter) enter(depth int, size uint64) {
	for len(f.frames) > depth {
		f.total -= f.frames[len(f.frames)-1]
		f.frames = f.frames[:len(f.frames)-1]
	}
	for len(f.frames) < depth {
		f.frames = append(f.frames, 0)
	}
	f.total += size - f.frames[depth-1]
	f.frames[depth-1] = size
	if f.total > frameMemory {
		f.memory.exceeded = errFrameMemory
		panic(errUnwound)
	}
}

// guard runs an EVM, which a frameMeter or its state may end.
func (s *simulation) guard(run func() error) error {
	defer func() { s.state.memory.machine = nil }()
	return unwound(run)
}

// addressed returns the end of the memory that an operation reads or writes, in bytes. The
// operation has been paid for, so that the end is far below 2⁶⁴.
func addressed(op vm.OpCode, stack []uint256.Int) uint64 {
	top := func(i int) *uint256.Int { return &stack[len(stack)-1-i] }
	end := func(offset, size int) uint64 {
		if top(size).IsZero() {
			return 0
		}
		return top(offset).Uint64() + top(size).Uint64()
	}
	switch op {
	case vm.MLOAD, vm.MSTORE:
		return top(0).Uint64() + 32
	case vm.MSTORE8:
		return top(0).Uint64() + 1
	case vm.KECCAK256, vm.RETURN, vm.REVERT, vm.LOG0, vm.LOG1, vm.LOG2, vm.LOG3, vm.LOG4:
		return end(0, 1)
	case vm.CALLDATACOPY, vm.CODECOPY, vm.RETURNDATACOPY:
		return end(0, 2)
	case vm.MCOPY:
		return max(end(0, 2), end(1, 2))
	case vm.EXTCODECOPY:
		return end(1, 3)
	case vm.CREATE, vm.CREATE2:
		return end(1, 2)
	case vm.CALL, vm.CALLCODE:
		return max(end(3, 4), end(5, 6))
	case vm.DELEGATECALL, vm.STATICCALL:
		return max(end(2, 3), end(4, 5))
	}
	return 0
}
