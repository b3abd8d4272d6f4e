package execute

import (
	"context"
	"errors"
	"math/big"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
)

// A run whose client has left ends at the next call or creation, although its code has no jumps.
func TestCanceledRunEndsWithoutJumps(t *testing.T) {
	const before, rest = 10, 50 // calls
	codes := map[string]func(p *program.Program){
		"precompiled contracts": func(p *program.Program) { p.StaticCall(nil, 4, 0, 0, 0, 0).Op(vm.POP) },
		"creations":             func(p *program.Program) { p.Op(vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CREATE, vm.POP) },
	}
	runs := map[string]func(s *simulation, ctx context.Context, message *Message, hooks *tracing.Hooks) error{
		"call": func(s *simulation, _ context.Context, message *Message, hooks *tracing.Hooks) error {
			m, err := s.message(message)
			if err == nil {
				_, err = s.try(m, hooks)
			}
			return err
		},
		"trace": func(s *simulation, ctx context.Context, message *Message, hooks *tracing.Hooks) error {
			return s.trace(ctx, message, Tracer{Hooks: hooks, Stop: func(error) {}})
		},
	}
	for code, add := range codes {
		for kind, run := range runs {
			t.Run(code+", "+kind, func(t *testing.T) {
				p := program.New()
				for range before + rest {
					add(p)
				}
				w := newWorld()
				w.put(contract, 1, p.Bytes())
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				s := newCaller(t).newSimulation(ctx, w.at())
				s.lasting = kind == "trace"
				entered := 0
				hooks := &tracing.Hooks{OnEnter: func(depth int, _ byte, _, _ common.Address, _ []byte, _ uint64, _ *big.Int) {
					if depth == 0 {
						return
					}
					if entered++; entered == before {
						leave()
						for machine := s.state.memory.machine; !machine.Cancelled(); {
							runtime.Gosched()
						}
					}
				}}
				err := s.do(CallOptions{}, func(s *simulation) error { return run(s, ctx, &Message{To: &contract}, hooks) })
				if kind == "call" && !errors.Is(err, errAborted) || kind == "trace" && err != nil {
					t.Errorf("ended with %v", err)
				}
				if entered > before+1 { // a hook is called before the state is asked for a snapshot
					t.Errorf("%d calls, expected that the run ends after %d", entered, before)
				}
			})
		}
	}
}

// The state of a simulated block ends a canceled run, too.
func TestCanceledSimulationEnds(t *testing.T) {
	machine := new(vm.EVM)
	machine.Cancel()
	s := &simulatedState{memory: &memoryMeter{machine: machine}}
	if err := unwound(func() error { s.Snapshot(); return nil }); !errors.Is(err, errAborted) {
		t.Errorf("%v, expected that it is aborted", err)
	}
}
