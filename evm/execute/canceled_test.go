package execute

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
)

// A run whose client has left ends at the next call, creation or hash, although its code has no jumps.
func TestCanceledRunEndsWithoutJumps(t *testing.T) {
	const before, rest = 10, 50 // operations
	codes := map[string]func(p *program.Program){
		"precompiled contracts": func(p *program.Program) { p.StaticCall(nil, 4, 0, 0, 0, 0).Op(vm.POP) },
		"hashes":                func(p *program.Program) { p.Op(vm.PUSH0, vm.PUSH0, vm.KECCAK256, vm.POP) },
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
				ran := 0
				hooks := &tracing.Hooks{OnOpcode: func(_ uint64, op byte, _, _ uint64, _ tracing.OpContext, _ []byte, _ int, _ error) {
					if op := vm.OpCode(op); op != vm.STATICCALL && op != vm.CREATE && op != vm.KECCAK256 {
						return
					}
					if ran++; ran == before {
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
				if ran != before {
					t.Errorf("%d operations, expected that the run ends in number %d", ran, before)
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
	for name, operation := range map[string]func(){"snapshot": func() { s.Snapshot() }, "hash": func() { s.AddPreimage(common.Hash{}, nil) }} {
		if err := unwound(func() error { operation(); return nil }); !errors.Is(err, errAborted) {
			t.Errorf("%s: %v, expected that it is aborted", name, err)
		}
	}
}
