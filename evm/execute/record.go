package execute

import (
	"math/big"
	"slices"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// traceRecorder records who takes part in the traces of transactions while they run. Its
// traces are those that flatCallTracer returns: calls of precompiled contracts by
// contracts are left out. It belongs to one machine.
//
// An EVM that has a tracer runs code in a loop that takes two to three times as long. So the
// recorder is the EVM's tracer only where the EVM looks for one to report a call to: it is
// removed before code runs, and set again by [collidingState] when code reads what the EVM
// reads before each nested call, and when a call is undone.
//
//	EVM                        state                       tracer
//	begins a call, reports it                              set
//	                           Snapshot                    removed
//	runs the code              AddressInAccessList, ...    set
//	begins a nested call, reports it
//	undoes the call            RevertToSnapshot            set
//	reports its end
//
// So every call that begins is reported, and the end of every call that fails. Before Berlin
// the EVM reads nothing before some calls, and the tracer is not removed.
type traceRecorder struct {
	hooks       tracing.Hooks
	precompiles []common.Address
	removable   bool
	machine     *vm.EVM     // that runs a transaction
	traces      []evm.Trace // of the transaction
	open        []int       // by depth, the position in traces of the last call that began there, or uncounted
	began       bool        // a call has begun since the last snapshot
}

// uncounted is the position of a call that is left out.
const uncounted = -1

// newTraceRecorder returns a recorder for blocks under the rules of an EVM, or nil if the
// executor does not record traces.
func (e *Executor) newTraceRecorder(machine *vm.EVM) *traceRecorder {
	if !e.traces {
		return nil
	}
	rules := machine.GetRules()
	r := &traceRecorder{precompiles: vm.ActivePrecompiles(rules), removable: rules.IsBerlin}
	r.hooks = tracing.Hooks{OnEnter: r.enter, OnExit: r.exit}
	return r
}

// newTraces returns the traces of a block to which those of its transactions are added, or
// nil if the executor does not record traces.
func (e *Executor) newTraces() *evm.Traces {
	if !e.traces {
		return nil
	}
	return new(evm.Traces)
}

// addRewards appends the rewards that a block pays.
func (e *Executor) addRewards(t *evm.Traces, header *types.Header, uncles []*types.Header) {
	if t == nil {
		return
	}
	for _, reward := range e.Rewards(header, uncles) {
		t.List = append(t.List, evm.Trace{To: reward.Author, Roles: evm.Rewarded})
	}
}

// begin begins to record a transaction.
func (r *traceRecorder) begin(machine *vm.EVM) {
	if r == nil {
		return
	}
	r.machine, r.traces, r.open, r.began = machine, nil, r.open[:0], false
	r.set()
}

// set makes the recorder the EVM's tracer while a transaction runs.
func (r *traceRecorder) set() {
	if r != nil && r.machine != nil {
		r.machine.Config.Tracer = &r.hooks
	}
}

// remove undoes set after a call has begun, before its code runs. Code at the greatest depth
// keeps the tracer: its calls fail before the EVM reads anything.
func (r *traceRecorder) remove() {
	if r == nil || r.machine == nil || !r.began {
		return
	}
	r.began = false
	if r.removable && len(r.open) <= int(params.CallCreateDepth) {
		r.machine.Config.Tracer = nil
	}
}

// end ends what begin began, and returns the traces of the transaction.
func (r *traceRecorder) end(machine *vm.EVM) []evm.Trace {
	if r == nil {
		return nil
	}
	machine.Config.Tracer, r.machine = nil, nil
	return r.traces
}

func (r *traceRecorder) enter(depth int, kind byte, from, to common.Address, _ []byte, _ uint64, _ *big.Int) {
	r.began = true
	for len(r.open) < depth {
		r.open = append(r.open, uncounted)
	}
	op := vm.OpCode(kind)
	if depth > 0 && (op == vm.CALL || op == vm.STATICCALL) && r.isPrecompiled(to) {
		r.open = append(r.open[:depth], uncounted)
		return
	}
	roles := evm.Sender | evm.Receiver
	if op == vm.CREATE || op == vm.CREATE2 {
		roles |= evm.Created
	}
	r.open = append(r.open[:depth], len(r.traces))
	r.traces = append(r.traces, evm.Trace{From: from, To: to, Roles: roles})
}

func (r *traceRecorder) exit(depth int, _ []byte, _ uint64, _ error, reverted bool) {
	if !reverted || depth >= len(r.open) || r.open[depth] == uncounted {
		return
	}
	at := r.open[depth]
	if r.traces[at].Roles&evm.Created != 0 {
		r.traces[at].Roles = evm.Sender
	}
	for i := range r.traces[at:] {
		r.traces[at+i].Roles &^= evm.Created
	}
}

// isPrecompiled reports whether a contract is precompiled. The addresses of precompiled
// contracts begin with zeros, so most others are told apart at once.
func (r *traceRecorder) isPrecompiled(address common.Address) bool {
	return address[0] == 0 && address[1] == 0 && slices.Contains(r.precompiles, address)
}
