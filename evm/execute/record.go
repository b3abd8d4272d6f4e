package execute

import (
	"math/big"
	"slices"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// traceRecorder records who takes part in the traces of transactions while they run. Its
// traces are those that flatCallTracer returns: calls of precompiled contracts by
// contracts are left out. It belongs to one machine.
type traceRecorder struct {
	hooks       tracing.Hooks
	precompiles []common.Address
	traces      []evm.Trace // of the transaction that runs
	open        []int       // positions in traces of the calls that have begun; uncounted for one that is left out
}

const uncounted = -1

// newTraceRecorder returns a recorder for blocks under the rules of an EVM, or nil if the
// executor does not record traces.
func (e *Executor) newTraceRecorder(machine *vm.EVM) *traceRecorder {
	if !e.traces {
		return nil
	}
	r := &traceRecorder{precompiles: vm.ActivePrecompiles(machine.GetRules())}
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
	r.traces, r.open = nil, r.open[:0]
	machine.Config.Tracer = &r.hooks
}

// end ends what begin began, and returns the traces of the transaction.
func (r *traceRecorder) end(machine *vm.EVM) []evm.Trace {
	if r == nil {
		return nil
	}
	machine.Config.Tracer = nil
	return r.traces
}

func (r *traceRecorder) enter(depth int, kind byte, from, to common.Address, _ []byte, _ uint64, _ *big.Int) {
	op := vm.OpCode(kind)
	if depth > 0 && (op == vm.CALL || op == vm.STATICCALL) && r.isPrecompiled(to) {
		r.open = append(r.open, uncounted)
		return
	}
	roles := evm.Sender | evm.Receiver
	if op == vm.CREATE || op == vm.CREATE2 {
		roles |= evm.Created
	}
	r.open = append(r.open, len(r.traces))
	r.traces = append(r.traces, evm.Trace{From: from, To: to, Roles: roles})
}

func (r *traceRecorder) exit(_ int, _ []byte, _ uint64, _ error, reverted bool) {
	last := len(r.open) - 1
	at := r.open[last]
	r.open = r.open[:last]
	if at == uncounted || !reverted {
		return
	}
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
