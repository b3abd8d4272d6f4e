package trace

import (
	"context"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/holiman/uint256"
)

// vmTracer writes Parity's vmTrace: the code of each frame and the effect of each
// instruction. Frames opened by an instruction are nested in it:
//
//	{"code":"0x6001...","ops":[
//	  {"pc":0,"op":"PUSH1","cost":3,"sub":null,"ex":{"used":78997,"push":["0x1"],"mem":null,"store":null}},
//	  {"pc":9,"op":"CALL","cost":700,"sub":{"code":"0x...","ops":[...]},"ex":{...}}]}
//
// The effect of an instruction is known when the next one of its frame begins, or when the
// frame ends. Until then it is the frame's open instruction.
type vmTracer struct {
	allowance
	env    *tracing.VMContext
	out    []byte
	frames []vmFrame
}

// vmFrame is an unfinished frame.
type vmFrame struct {
	hidden bool // not written: a self-destruction, which go-ethereum reports as a frame
	ops    int  // written so far
	open   bool
	op     vmOp // valid if open
}

// vmOp is an instruction whose effect is not yet written.
type vmOp struct {
	code       vm.OpCode
	gas, cost  uint64 // gas before it, and what it uses; the cost is written with the sub member
	immediate  byte   // the byte behind it in the code
	failed     bool
	hasSub     bool        // its sub member is written
	off, size  uint64      // memory that it writes; size 0: none
	key, value uint256.Int // of SSTORE
}

func newVMTracer(room Room, end context.CancelCauseFunc) *vmTracer {
	return &vmTracer{allowance: allowance{room: room, end: end}}
}

func (t *vmTracer) hooks() *tracing.Hooks {
	return &tracing.Hooks{
		OnTxStart: func(env *tracing.VMContext, _ *types.Transaction, _ common.Address) { t.env = env },
		OnEnter:   t.onEnter, OnExit: t.onExit, OnOpcode: t.onOpcode, OnFault: t.onFault,
	}
}

func (t *vmTracer) onEnter(_ int, kind byte, _, to common.Address, input []byte, gas uint64, _ *big.Int) {
	op := vm.OpCode(kind)
	frame := vmFrame{hidden: t.ended || op == vm.SELFDESTRUCT}
	if !frame.hidden {
		creates := op == vm.CREATE || op == vm.CREATE2
		if n := len(t.frames); n > 0 {
			opener := &t.frames[n-1].op
			opener.hasSub = true
			cost := opener.cost
			if creates {
				// As the cost of a call, that of a creation includes the gas that the frame
				// gets. go-ethereum counts it for calls only.
				cost += gas
			}
			t.out = append(appendCost(t.out, cost), `,"sub":`...)
		}
		code := input
		if !creates {
			code = t.executed(to)
		}
		t.out = append(appendBytes(append(t.out, `{"code":`...), code), `,"ops":[`...)
		t.check(len(t.out))
	}
	t.frames = append(t.frames, frame)
}

// executed returns the code that a call of an account runs: its own, or that of the account to
// which it delegates.
func (t *vmTracer) executed(account common.Address) []byte {
	code := t.env.StateDB.GetCode(account)
	if target, ok := types.ParseDelegation(code); ok {
		return t.env.StateDB.GetCode(target)
	}
	return code
}

func (t *vmTracer) onExit(int, []byte, uint64, error, bool) {
	last := len(t.frames) - 1
	frame := &t.frames[last]
	if !t.ended && !frame.hidden {
		if frame.open {
			t.close(frame, frame.op.gas-min(frame.op.gas, frame.op.cost), nil)
		}
		t.out = append(t.out, "]}"...)
	}
	t.frames = t.frames[:last]
}

// onFault is called when the open instruction failed. go-ethereum also reports REVERT as a
// failure, though it executes normally.
func (t *vmTracer) onFault(_ uint64, opcode byte, _, _ uint64, _ tracing.OpContext, _ int, _ error) {
	if n := len(t.frames); n > 0 && vm.OpCode(opcode) != vm.REVERT {
		t.frames[n-1].op.failed = true
	}
}

func (t *vmTracer) onOpcode(pc uint64, opcode byte, gas, cost uint64, scope tracing.OpContext, _ []byte, _ int, err error) {
	if t.ended || len(t.frames) == 0 {
		return
	}
	frame := &t.frames[len(t.frames)-1]
	if frame.open {
		t.close(frame, gas, scope)
	}
	if pc >= uint64(len(scope.ContractCode())) {
		return // the end of the code, which go-ethereum reports as a STOP
	}
	if frame.ops > 0 {
		t.out = append(t.out, ',')
	}
	frame.ops++
	t.out = strconv.AppendUint(append(t.out, `{"pc":`...), pc, 10)
	t.out = append(append(append(t.out, `,"op":"`...), vm.OpCode(opcode).String()...), '"')
	frame.open, frame.op = true, vmOp{code: vm.OpCode(opcode), gas: gas, cost: cost, failed: err != nil}
	if code := scope.ContractCode(); pc+1 < uint64(len(code)) {
		frame.op.immediate = code[pc+1]
	}
	frame.op.read(scope.StackData())
	t.check(len(t.out))
}

// close writes the effect of the frame's open instruction, with the remaining gas, stack
// and memory after it; scope is nil if the frame has ended.
func (t *vmTracer) close(frame *vmFrame, left uint64, scope tracing.OpContext) {
	op := &frame.op
	frame.open = false
	if !op.hasSub {
		t.out = append(appendCost(t.out, op.cost), `,"sub":null`...)
	}
	if op.failed {
		t.out = append(t.out, `,"ex":null}`...)
		return
	}
	t.out = strconv.AppendUint(append(t.out, `,"ex":{"used":`...), left, 10)
	var pushed []uint256.Int
	if scope != nil {
		stack := scope.StackData()
		pushed = stack[max(0, len(stack)-op.pushes()):]
	}
	t.out = appendWords(append(t.out, `,"push":`...), pushed)
	t.out = append(t.out, `,"mem":`...)
	if written := op.written(scope); written != nil {
		t.out = strconv.AppendUint(append(t.out, `{"off":`...), op.off, 10)
		t.out = append(appendBytes(append(t.out, `,"data":`...), written), '}')
	} else {
		t.out = append(t.out, "null"...)
	}
	t.out = append(t.out, `,"store":`...)
	if op.code == vm.SSTORE {
		t.out = appendWord(append(t.out, `{"key":`...), &op.key)
		t.out = append(appendWord(append(t.out, `,"val":`...), &op.value), '}')
	} else {
		t.out = append(t.out, "null"...)
	}
	t.out = append(t.out, "}}"...)
}

func appendCost(out []byte, cost uint64) []byte {
	return strconv.AppendUint(append(out, `,"cost":`...), cost, 10)
}

// read takes the instruction's operands from the stack.
func (o *vmOp) read(stack []uint256.Int) {
	top := func(i int) (item uint256.Int) {
		if i < len(stack) {
			item = stack[len(stack)-1-i]
		}
		return item
	}
	region := func(off, size int) {
		from, length := top(off), top(size)
		o.off, o.size = from.Uint64(), length.Uint64()
	}
	switch o.code {
	case vm.MLOAD, vm.MSTORE:
		from := top(0)
		o.off, o.size = from.Uint64(), 32
	case vm.MSTORE8:
		from := top(0)
		o.off, o.size = from.Uint64(), 1
	case vm.CALLDATACOPY, vm.CODECOPY, vm.RETURNDATACOPY, vm.MCOPY:
		region(0, 2)
	case vm.EXTCODECOPY:
		region(1, 3)
	case vm.CALL, vm.CALLCODE:
		region(5, 6)
	case vm.DELEGATECALL, vm.STATICCALL:
		region(4, 5)
	case vm.SSTORE:
		o.key, o.value = top(0), top(1)
	}
}

// written returns the memory that the instruction wrote, or nil.
func (o *vmOp) written(scope tracing.OpContext) []byte {
	if scope == nil || o.size == 0 {
		return nil
	}
	memory := scope.MemoryData()
	if o.off > uint64(len(memory)) || o.size > uint64(len(memory))-o.off {
		return nil
	}
	return memory[o.off : o.off+o.size]
}

// pushes returns how many stack items the instruction wrote; for those that copy or swap items, all
// down to the lowest.
func (o *vmOp) pushes() int {
	switch {
	case o.code >= vm.DUP1 && o.code <= vm.DUP16:
		return int(o.code-vm.DUP1) + 2
	case o.code >= vm.SWAP1 && o.code <= vm.SWAP16:
		return int(o.code-vm.SWAP1) + 2
	case o.code >= vm.LOG0 && o.code <= vm.LOG4:
		return 0
	}
	switch o.code {
	case vm.DUPN, vm.SWAPN:
		return depthOf(o.immediate) + 1
	case vm.EXCHANGE:
		return exchangedDepth(o.immediate)
	case vm.STOP, vm.POP, vm.MSTORE, vm.MSTORE8, vm.SSTORE, vm.TSTORE, vm.JUMP, vm.JUMPI, vm.JUMPDEST, vm.CALLDATACOPY, vm.CODECOPY,
		vm.EXTCODECOPY, vm.RETURNDATACOPY, vm.MCOPY, vm.RETURN, vm.REVERT, vm.INVALID, vm.SELFDESTRUCT:
		return 0
	}
	return 1
}

// depthOf decodes the immediate of DUPN and SWAPN (EIP-8024): the depth of the item that is copied, or of
// the one above the item that is swapped with the top. Both have the form of DUP1 to DUP16 and SWAP1 to SWAP16.
func depthOf(immediate byte) int { return (int(immediate) + 145) % 256 }

// exchangedDepth decodes the immediate of EXCHANGE (EIP-8024): the depth of the lower of the two items, where
// the top has depth 1.
func exchangedDepth(immediate byte) int {
	k := int(immediate ^ 143)
	row, column := k/16, k%16
	if row < column {
		return column + 2
	}
	return 30 - row
}
