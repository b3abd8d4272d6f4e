package trace

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/tracers/logger"
	"github.com/holiman/uint256"
)

// structLogger writes one JSON object per instruction, in the format of geth's default
// tracer, directly into the answer:
//
//	{"structLogs":[{"pc":0,"op":"PUSH1","gas":79000,"gasCost":3,"depth":1,"stack":[]}, ...],
//	 "gas":21000,"failed":false,"returnValue":"0x"}
type structLogger struct {
	allowance
	stopper
	config *logger.Config

	out     []byte // the answer so far
	size    int    // of its objects, in bytes
	env     *tracing.VMContext
	storage map[common.Address]map[common.Hash]common.Hash // slots seen in each contract
	output  []byte
	err     error
	gas     uint64
	skip    bool // during a system call
}

func newStructLogger(config *logger.Config, out []byte, room Room, end context.CancelCauseFunc) *structLogger {
	return &structLogger{
		allowance: allowance{room: room, end: end}, config: config, out: append(out, `{"structLogs":[`...),
		storage: make(map[common.Address]map[common.Hash]common.Hash),
	}
}

func (l *structLogger) hooks() *tracing.Hooks {
	return &tracing.Hooks{
		OnTxStart:           func(env *tracing.VMContext, _ *types.Transaction, _ common.Address) { l.env = env },
		OnTxEnd:             l.onTxEnd,
		OnExit:              l.onExit,
		OnOpcode:            l.onOpcode,
		OnSystemCallStartV2: func(*tracing.VMContext) { l.skip = true },
		OnSystemCallEnd:     func() { l.skip = false },
	}
}

func (l *structLogger) onTxEnd(receipt *types.Receipt, err error) {
	if err != nil && l.err == nil {
		l.err = err
	}
	if err == nil && receipt != nil {
		l.gas = receipt.GasUsed
	}
}

func (l *structLogger) onExit(depth int, output []byte, _ uint64, err error, _ bool) {
	if depth == 0 && !l.skip {
		l.output, l.err = bytes.Clone(output), err
	}
}

func (l *structLogger) onOpcode(pc uint64, opcode byte, gas, cost uint64, scope tracing.OpContext, returned []byte, depth int, err error) {
	full := l.config.Limit != 0 && l.size > l.config.Limit
	if l.skip || l.ended || full || l.stopped() != nil {
		return
	}
	op := vm.OpCode(opcode)
	out := l.out
	if l.size > 0 {
		out = append(out, ',')
	}
	begin := len(out)
	out = strconv.AppendUint(append(out, `{"pc":`...), pc, 10)
	out = append(append(append(out, `,"op":"`...), op.String()...), '"')
	out = strconv.AppendUint(append(out, `,"gas":`...), gas, 10)
	out = strconv.AppendUint(append(out, `,"gasCost":`...), cost, 10)
	out = strconv.AppendInt(append(out, `,"depth":`...), int64(depth), 10)
	if err != nil {
		out = appendText(append(out, `,"error":`...), err.Error())
	}
	if !l.config.DisableStack {
		out = appendWords(append(out, `,"stack":`...), scope.StackData())
	}
	if l.config.EnableReturnData && len(returned) > 0 {
		out = appendBytes(append(out, `,"returnData":`...), returned)
	}
	if memory := scope.MemoryData(); l.config.EnableMemory && len(memory) > 0 {
		out = appendMemory(append(out, `,"memory":`...), memory)
	}
	// A failing instruction is not executed, so it has no slot to show.
	if !l.config.DisableStorage && err == nil && (op == vm.SLOAD || op == vm.SSTORE) {
		if slots := l.touch(op, scope); len(slots) > 0 {
			out = appendSlots(append(out, `,"storage":`...), slots)
		}
	}
	if refund := l.env.StateDB.GetRefund(); refund > 0 {
		out = strconv.AppendUint(append(out, `,"refund":`...), refund, 10)
	}
	l.out = append(out, '}')
	l.size += len(l.out) - begin
	l.check(len(l.out))
}

// touch records the slot that SLOAD or SSTORE accesses and returns all slots seen in the
// contract, or nil if the stack is too short.
func (l *structLogger) touch(op vm.OpCode, scope tracing.OpContext) map[common.Hash]common.Hash {
	address, stack := scope.Address(), scope.StackData()
	slots := l.storage[address]
	if slots == nil {
		slots = make(map[common.Hash]common.Hash)
		l.storage[address] = slots
	}
	top := len(stack) - 1
	switch {
	case op == vm.SLOAD && top >= 0:
		key := common.Hash(stack[top].Bytes32())
		slots[key] = l.env.StateDB.GetState(address, key)
	case op == vm.SSTORE && top >= 1:
		slots[stack[top].Bytes32()] = stack[top-1].Bytes32()
	default:
		return nil
	}
	return slots
}

// appendResult completes the answer. out is the slice passed to newStructLogger.
func (l *structLogger) appendResult(out []byte) ([]byte, error) {
	if err := l.stopped(); err != nil {
		return out, err
	}
	// The data returned by a failed run matters only as the reason of a revert.
	if l.err != nil && !errors.Is(l.err, vm.ErrExecutionReverted) {
		l.output = nil
	}
	out = strconv.AppendUint(append(l.out, `],"gas":`...), l.gas, 10)
	out = strconv.AppendBool(append(out, `,"failed":`...), l.err != nil)
	out = appendBytes(append(out, `,"returnValue":`...), l.output)
	return append(out, '}'), nil
}

// appendWords appends words as an array of quantities.
func appendWords(out []byte, words []uint256.Int) []byte {
	out = append(out, '[')
	for i := range words {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendWord(out, &words[i])
	}
	return append(out, ']')
}

// appendWord appends a word as a quantity.
func appendWord(out []byte, word *uint256.Int) []byte {
	out = append(out, `"0x`...)
	top := 3
	for top > 0 && word[top] == 0 {
		top--
	}
	out = strconv.AppendUint(out, word[top], 16)
	for top--; top >= 0; top-- {
		var digits [8]byte
		binary.BigEndian.PutUint64(digits[:], word[top])
		out = hex.AppendEncode(out, digits[:])
	}
	return append(out, '"')
}

// appendMemory appends memory as words of 32 bytes.
func appendMemory(out, memory []byte) []byte {
	out = append(out, '[')
	for i := 0; i < len(memory); i += 32 {
		if i > 0 {
			out = append(out, ',')
		}
		var word [32]byte
		copy(word[:], memory[i:])
		out = appendBytes(out, word[:])
	}
	return append(out, ']')
}

// appendSlots appends slots in the order of their keys.
func appendSlots(out []byte, slots map[common.Hash]common.Hash) []byte {
	out = append(out, '{')
	for i, key := range slices.SortedFunc(maps.Keys(slots), common.Hash.Cmp) {
		if i > 0 {
			out = append(out, ',')
		}
		value := slots[key]
		out = appendBytes(append(appendBytes(out, key[:]), ':'), value[:])
	}
	return append(out, '}')
}

func appendBytes(out, data []byte) []byte {
	return append(hex.AppendEncode(append(out, `"0x`...), data), '"')
}

// appendText appends a JSON string.
func appendText(out []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		return append(out, `""`...) // strings always encode
	}
	return append(out, quoted...)
}
