package trace

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// callTracerName is the name of go-ethereum's tracer that callTracer stands in for.
const callTracerName = "callTracer"

// callTracer collects the calls of a run and appends them in the format of geth's tracer
// of that name. The library's encodes every frame once for each call above it; this one
// appends each once.
//
//	{"from":"0x..","gas":"0x..","gasUsed":"0x..","to":"0x..","input":"0x..","output":"0x..",
//	 "calls":[{...}, ...],"logs":[...],"value":"0x0","type":"CALL"}
type callTracer struct {
	config   callTracerConfig
	attempts bool   // creations that failed have an address, too
	tracer   tracer // its own hooks and functions
	allowance
	stopper
	length     int // of the answer, so far and as it will be
	levelBytes int // that a frame takes for each frame above it

	gasLimit uint64
	frames   []callFrame // in the order in which they began; the first is the transaction's
	open     []int       // the frames that have begun and not ended, outermost first
	logs     []callLog   // of all frames
	data     []byte      // inputs, outputs, reasons and the data of logs
	depth    int         // of the frame that runs, also of one that is not collected
}

// callTracerConfig is the options. Errors about them show its name.
type callTracerConfig struct {
	OnlyTopCall bool `json:"onlyTopCall"`
	WithLog     bool `json:"withLog"`
}

// callFrame is a call. Those inside of it follow it in frames, with a greater depth.
type callFrame struct {
	kind              vm.OpCode
	depth             int // 0: the transaction
	from, to          common.Address
	gas, gasUsed      uint64
	value             *big.Int
	input, output     span // of data
	revert            span // of data: the reason as JSON
	failure           string
	reverted          bool // its changes and logs are undone
	children          int  // that have begun
	firstLog, lastLog int  // indexes in logs, from 1; 0: none
}

// callLog is a log of a frame.
type callLog struct {
	address         common.Address
	topics          []common.Hash
	data            span
	index, position uint
	next            int // log of the same frame, from 1
}

// span is a part of a slice.
type span struct{ from, to int }

func newCallTracer(options json.RawMessage) (*callTracer, error) {
	t := new(callTracer)
	if len(options) > 0 {
		if err := json.Unmarshal(options, &t.config); err != nil {
			return nil, err
		}
	}
	hooks := &tracing.Hooks{
		OnTxStart: func(_ *tracing.VMContext, tx *types.Transaction, _ common.Address) { t.gasLimit = tx.Gas() },
		OnTxEnd:   t.onTxEnd,
		OnEnter:   t.onEnter,
		OnExit:    t.onExit,
	}
	if t.config.WithLog {
		hooks.OnLog = t.onLog
	}
	t.tracer = tracer{hooks: hooks, stop: t.stop, appendResult: t.appendResult}
	return t, nil
}

// begin makes the tracer ready for a run. Its memory is that of the run before, of which
// nothing may be in use. The result goes behind length bytes, if room permits.
func (t *callTracer) begin(length int, room Room, end context.CancelCauseFunc) {
	t.allowance, t.length = allowance{room: room, end: end}, length
	t.gasLimit, t.depth = 0, 0
	t.frames, t.open, t.logs, t.data = t.frames[:0], t.open[:0], t.logs[:0], t.data[:0]
}

// collects reports whether there is room for that many bytes more.
func (t *callTracer) collects(bytes int) bool {
	if t.ended || t.stopped() != nil {
		return false
	}
	t.length += bytes
	t.check(t.length)
	return !t.ended
}

// keep copies data and returns where it is.
func (t *callTracer) keep(data []byte) span {
	from := len(t.data)
	t.data = append(t.data, data...)
	return span{from, len(t.data)}
}

func (t *callTracer) onEnter(depth int, kind byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
	t.depth = depth
	if t.config.OnlyTopCall && depth > 0 || !t.collects(frameBytes+t.levelBytes*len(t.open)+2*len(input)) {
		return
	}
	if depth == 0 {
		gas = t.gasLimit
	}
	at := len(t.frames)
	t.frames = append(t.frames, callFrame{kind: vm.OpCode(kind), depth: len(t.open), from: from, to: to, gas: gas, value: value, input: t.keep(input)})
	if len(t.open) > 0 {
		t.frames[t.open[len(t.open)-1]].children++
	}
	t.open = append(t.open, at)
}

func (t *callTracer) onExit(depth int, output []byte, gasUsed uint64, err error, reverted bool) {
	t.depth = max(depth-1, 0)
	if t.config.OnlyTopCall && depth > 0 || len(t.open) == 0 || !t.collects(2*len(output)) {
		return
	}
	frame := &t.frames[t.open[len(t.open)-1]]
	if depth > 0 {
		frame.gasUsed = gasUsed
	}
	t.open = t.open[:len(t.open)-1]
	if err == nil || !reverted { // the latter: creations that ran out of gas before Homestead
		frame.output = t.keep(output)
		return
	}
	frame.failure, frame.reverted = err.Error(), true
	if !errors.Is(err, vm.ErrExecutionReverted) || len(output) == 0 {
		return
	}
	frame.output = t.keep(output)
	if reason, err := abi.UnpackRevert(output); err == nil && reason != "" {
		from := len(t.data)
		t.data = appendText(t.data, reason)
		frame.revert = span{from, len(t.data)}
		t.collects(len(t.data) - from)
	}
}

func (t *callTracer) onTxEnd(receipt *types.Receipt, err error) {
	if err == nil && receipt != nil && len(t.frames) > 0 {
		t.frames[0].gasUsed = receipt.GasUsed
	}
}

func (t *callTracer) onLog(log *types.Log) {
	if t.config.OnlyTopCall && t.depth > 0 || len(t.open) == 0 || !t.collects(logBytes+2*len(log.Data)) {
		return
	}
	frame := &t.frames[t.open[len(t.open)-1]]
	t.logs = append(t.logs, callLog{address: log.Address, topics: log.Topics, data: t.keep(log.Data), index: log.Index, position: uint(frame.children)})
	if at := len(t.logs); frame.lastLog == 0 {
		frame.firstLog, frame.lastLog = at, at
	} else {
		t.logs[frame.lastLog-1].next, frame.lastLog = at, at
	}
}

// appendResult appends the calls.
func (t *callTracer) appendResult(out []byte) ([]byte, error) {
	if err := t.stopped(); err != nil {
		return out, err
	}
	if len(t.frames) == 0 || len(t.open) > 0 {
		return out, errors.New("incorrect number of top-level calls")
	}
	out, _ = t.appendFrame(out, 0, false)
	return out, nil
}

// appendFrame appends a frame and those inside of it, and returns the index of the next
// one. undone says that one above it failed.
func (t *callTracer) appendFrame(out []byte, at int, undone bool) (_ []byte, next int) {
	f := &t.frames[at]
	out = appendBytes(append(out, `{"from":`...), f.from[:])
	out = appendUint(append(out, `,"gas":`...), f.gas)
	out = appendUint(append(out, `,"gasUsed":`...), f.gasUsed)
	if creates := f.kind == vm.CREATE || f.kind == vm.CREATE2; !creates || !f.reverted || t.attempts {
		out = appendBytes(append(out, `,"to":`...), f.to[:])
	}
	out = appendBytes(append(out, `,"input":`...), t.data[f.input.from:f.input.to])
	if f.output.to > f.output.from {
		out = appendBytes(append(out, `,"output":`...), t.data[f.output.from:f.output.to])
	}
	if f.failure != "" {
		out = appendText(append(out, `,"error":`...), f.failure)
	}
	if f.revert.to > f.revert.from {
		out = append(append(out, `,"revertReason":`...), t.data[f.revert.from:f.revert.to]...)
	}
	undone = undone || f.reverted
	next = at + 1
	if f.children > 0 {
		out = append(out, `,"calls":`...)
		separator := byte('[')
		for next < len(t.frames) && t.frames[next].depth > f.depth {
			out, next = t.appendFrame(append(out, separator), next, undone)
			separator = ','
		}
		out = append(out, ']')
	}
	if f.firstLog != 0 && !undone {
		out = t.appendLogs(append(out, `,"logs":`...), f.firstLog)
	}
	if f.value != nil {
		out = append(f.value.Append(append(out, `,"value":"0x`...), 16), '"')
	}
	return append(append(append(out, `,"type":"`...), f.kind.String()...), `"}`...), next
}

func (t *callTracer) appendLogs(out []byte, first int) []byte {
	separator := byte('[')
	for at := first; at != 0; at = t.logs[at-1].next {
		l := &t.logs[at-1]
		out = append(out, separator)
		separator = ','
		out = appendBytes(append(out, `{"address":`...), l.address[:])
		out = append(out, `,"topics":[`...)
		for i := range l.topics {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendBytes(out, l.topics[i][:])
		}
		out = appendBytes(append(out, `],"data":`...), t.data[l.data.from:l.data.to])
		out = appendUint(append(out, `,"index":`...), uint64(l.index))
		out = append(appendUint(append(out, `,"position":`...), uint64(l.position)), '}')
	}
	return append(out, ']')
}

// appendUint appends a quantity.
func appendUint(out []byte, n uint64) []byte {
	return append(strconv.AppendUint(append(out, `"0x`...), n, 16), '"')
}
