package execute

import (
	"context"
	"runtime"
	"strings"
	"testing"

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
			at := w.at()
			at.State = crowd{w}
			s := e.newSimulation(t.Context(), at)
			err := s.do(CallOptions{}, func(s *simulation) error {
				msg, err := s.message(&Message{To: &contract})
				if err != nil {
					return err
				}
				result, err := s.run(msg, nil)
				if err != nil {
					return err
				}
				return outcomeError(result)
			})
			if got := describe(err); !strings.Contains(got, test.ends) {
				t.Errorf("ended with %q, want %q", got, test.ends)
			}
			if kept := heldBy(&s); kept > callMemory {
				t.Errorf("it holds %d bytes, want %d at most", kept, callMemory)
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
