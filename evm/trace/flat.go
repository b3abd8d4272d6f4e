package trace

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// Frame is a call, a creation, a self-destruction or a block reward in Parity's format. A
// transaction is a tree of frames, listed in order. TraceAddress is the path from the root:
// [] is the transaction itself, [0,2] the third child of its first child.
type Frame struct {
	TraceAddress []int

	kind          vm.OpCode // of a frame that is no reward
	reward        string    // kind of reward; empty: none
	from, to      common.Address
	gas, gasUsed  uint64
	value         *big.Int // nil: zero
	input, output []byte
	failure       string // in Parity's words
	reverted      bool   // it failed, but has a result
	subtraces     int
	place         *place // nil: the frame of a call that is not part of a block
}

// place is the block of a frame, and its transaction.
type place struct {
	block, transaction common.Hash
	number, position   uint64
}

// Who returns the addresses of a frame as trace_filter matches them: from calls, creates or
// is destroyed; to is called, created or paid. A reward has no from, and a creation that
// failed no to; they are nil.
func (f *Frame) Who() (from, to *common.Address) {
	switch {
	case f.reward != "":
		return nil, &f.to
	case f.creates() && f.failure != "":
		return &f.from, nil
	}
	return &f.from, &f.to
}

// Transaction returns the hash of the frame's transaction, which must be part of a block.
func (f *Frame) Transaction() common.Hash { return f.place.transaction }

func (f *Frame) creates() bool { return f.kind == vm.CREATE || f.kind == vm.CREATE2 }

// RewardFrame returns the frame of a block's mining reward.
func RewardFrame(block execute.Block, reward *execute.Reward) Frame {
	kind := "block"
	if reward.Uncle {
		kind = "uncle"
	}
	return Frame{
		TraceAddress: []int{}, reward: kind, to: reward.Author, value: reward.Value.ToBig(),
		place: &place{block: block.Hash(), number: block.Header().Number.Uint64()},
	}
}

// Append appends the frame. A reward and a self-destruction have null as their result, and a reward
// has no members that name a transaction.
//
//	{"action":{...},"blockHash":"0x..","blockNumber":1,"result":{...},"subtraces":0,
//	 "traceAddress":[0,2],"transactionHash":"0x..","transactionPosition":0,"type":"call"}
func (f *Frame) Append(out []byte) []byte {
	out = f.appendAction(append(out, `{"action":{`...))
	if f.place != nil {
		out = appendBytes(append(out, `},"blockHash":`...), f.place.block[:])
		out = strconv.AppendUint(append(out, `,"blockNumber":`...), f.place.number, 10)
	} else {
		out = append(out, '}')
	}
	if f.failure != "" {
		out = appendText(append(out, `,"error":`...), f.failure)
	}
	out = f.appendResult(out)
	out = strconv.AppendInt(append(out, `,"subtraces":`...), int64(f.subtraces), 10)
	out = append(out, `,"traceAddress":[`...)
	for i, child := range f.TraceAddress {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(child), 10)
	}
	out = append(out, ']')
	if f.reward == "" && f.place != nil {
		out = appendBytes(append(out, `,"transactionHash":`...), f.place.transaction[:])
		out = strconv.AppendUint(append(out, `,"transactionPosition":`...), f.place.position, 10)
	}
	kind := "call"
	switch {
	case f.reward != "":
		kind = "reward"
	case f.kind == vm.SELFDESTRUCT:
		kind = "suicide"
	case f.creates():
		kind = "create"
	}
	return append(append(append(out, `,"type":"`...), kind...), `"}`...)
}

// appendAction appends the members of the action.
func (f *Frame) appendAction(out []byte) []byte {
	switch {
	case f.reward != "":
		out = appendBytes(append(out, `"author":`...), f.to[:])
		out = append(append(append(out, `,"rewardType":"`...), f.reward...), '"')
		return appendBig(append(out, `,"value":`...), f.value)
	case f.kind == vm.SELFDESTRUCT:
		out = appendBytes(append(out, `"address":`...), f.from[:])
		out = appendBig(append(out, `,"balance":`...), f.value)
		return appendBytes(append(out, `,"refundAddress":`...), f.to[:])
	case f.creates():
		out = append(append(append(out, `"creationMethod":"`...), strings.ToLower(f.kind.String())...), '"')
	default:
		out = append(append(append(out, `"callType":"`...), strings.ToLower(f.kind.String())...), '"')
	}
	out = appendBytes(append(out, `,"from":`...), f.from[:])
	out = appendUint(append(out, `,"gas":`...), f.gas)
	if f.creates() {
		out = appendBytes(append(out, `,"init":`...), f.input)
	} else {
		out = appendBytes(append(out, `,"input":`...), f.input)
		out = appendBytes(append(out, `,"to":`...), f.to[:])
	}
	return appendBig(append(out, `,"value":`...), f.value)
}

// appendResult appends the member with the result. Frames that failed have none, unless they were
// reverted. A creation that was reverted made no contract: its result is that of a call, as in Erigon
// and Nethermind. Clients with types reject one that has code but no address.
func (f *Frame) appendResult(out []byte) []byte {
	switch {
	case f.reward != "" || f.kind == vm.SELFDESTRUCT:
		return append(out, `,"result":null`...)
	case f.failure != "" && !f.reverted:
		return out
	}
	out = append(out, `,"result":{`...)
	if f.creates() && !f.reverted {
		out = appendBytes(append(out, `"address":`...), f.to[:])
		out = appendBytes(append(out, `,"code":`...), f.output)
		return append(appendUint(append(out, `,"gasUsed":`...), f.gasUsed), '}')
	}
	out = appendUint(append(out, `"gasUsed":`...), f.gasUsed)
	return append(appendBytes(append(out, `,"output":`...), f.output), '}')
}

// appendBig appends a quantity.
func appendBig(out []byte, n *big.Int) []byte {
	if n == nil {
		return append(out, `"0x0"`...)
	}
	return append(n.Append(append(out, `"0x`...), 16), '"')
}

// parityErrors are Parity's words for what made a frame fail, by go-ethereum's or the
// beginning of these.
var parityErrors = []struct{ geth, parity string }{
	{vm.ErrExecutionReverted.Error(), "Reverted"},
	{vm.ErrOutOfGas.Error(), "Out of gas"}, // also in front of a reason
	{vm.ErrCodeStoreOutOfGas.Error(), "Out of gas"},
	{vm.ErrGasUintOverflow.Error(), "Out of gas"},
	{vm.ErrMaxCodeSizeExceeded.Error(), "Out of gas"},
	{vm.ErrInvalidJump.Error(), "Bad jump destination"},
	{vm.ErrReturnDataOutOfBounds.Error(), "Out of bounds"},
	{"stack limit reached", "Out of stack"},
	{"stack underflow", "Stack underflow"},
	{"invalid opcode:", "Bad instruction"},
	{"invalid input length", "Built-in failed"},
}

func parityError(text string) string {
	for _, known := range parityErrors {
		if strings.HasPrefix(text, known.geth) {
			return known.parity
		}
	}
	return text
}

// flatTracer collects the frames of a run for Parity's format, which differ from those of
// callTracer: calls of precompiled contracts are left out, and the gas of the outermost
// frame does not include what the transaction pays to be included.
type flatTracer struct {
	callTracer
	chain       *params.ChainConfig
	precompiles []common.Address
}

// newFlatTracer makes a tracer whose frames go behind length bytes, if room permits.
func newFlatTracer(chain *params.ChainConfig, length int, room Room, end context.CancelCauseFunc) *flatTracer {
	t := &flatTracer{chain: chain}
	t.levelBytes = 8 // a number of TraceAddress
	t.begin(length, room, end)
	return t
}

func (t *flatTracer) hooks() *tracing.Hooks {
	return &tracing.Hooks{
		OnTxStart: func(env *tracing.VMContext, _ *types.Transaction, _ common.Address) {
			t.precompiles = vm.ActivePrecompiles(t.chain.Rules(env.BlockNumber, env.Random != nil, env.Time))
		},
		OnEnter: func(depth int, kind byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
			if depth == 0 {
				t.gasLimit = gas
			}
			t.onEnter(depth, kind, from, to, input, gas, value)
		},
		OnExit: t.exit,
	}
}

func (t *flatTracer) exit(depth int, output []byte, gasUsed uint64, err error, reverted bool) {
	t.onExit(depth, output, gasUsed, err, reverted)
	if t.ended || len(t.frames) == 0 {
		return
	}
	if depth == 0 {
		t.frames[0].gasUsed = gasUsed
		return
	}
	last := len(t.frames) - 1
	if f := &t.frames[last]; f.depth == len(t.open) && (f.kind == vm.CALL || f.kind == vm.STATICCALL) && slices.Contains(t.precompiles, f.to) {
		t.frames = t.frames[:last]
		t.frames[t.open[len(t.open)-1]].children--
	}
}

// result returns the frames of a run that has ended. They are at a place in the chain, which
// may be nil.
func (t *flatTracer) result(at *place) ([]Frame, error) {
	if len(t.frames) == 0 || len(t.open) > 0 {
		return nil, errors.New("incorrect number of top-level calls")
	}
	frames := make([]Frame, len(t.frames))
	var path []int // of the frame before
	for i := range t.frames {
		f := &t.frames[i]
		if f.depth > len(path) {
			path = append(path, 0)
		} else if path = path[:f.depth]; f.depth > 0 {
			path[f.depth-1]++
		}
		frames[i] = Frame{
			TraceAddress: append([]int{}, path...), kind: f.kind, from: f.from, to: f.to, gas: f.gas, gasUsed: f.gasUsed, value: f.value,
			input: t.data[f.input.from:f.input.to], output: t.data[f.output.from:f.output.to], subtraces: f.children, place: at,
			failure: parityError(f.failure), reverted: f.failure == vm.ErrExecutionReverted.Error(),
		}
	}
	return frames, nil
}
