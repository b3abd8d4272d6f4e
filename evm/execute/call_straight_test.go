package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
)

// askedHashes calls a function when the hash of a block is asked for.
type askedHashes func(number uint64)

// BlockHash implements [BlockHashes].
func (a askedHashes) BlockHash(_ context.Context, number uint64) (common.Hash, error) {
	a(number)
	return common.Hash{}, nil
}

// Numbers of blocks whose hashes code asks for when it begins and when it ends.
const askedFirst, askedLast = 900, 901

// between returns code that asks for two hashes and runs instructions between them.
func between(times int, ops ...vm.OpCode) []byte {
	p := program.New().Push(uint64(askedFirst)).Op(vm.BLOCKHASH, vm.POP)
	for range times {
		p.Op(ops...)
	}
	return p.Push(uint64(askedLast)).Op(vm.BLOCKHASH, vm.POP, vm.STOP).Bytes()
}

// A run whose client has left ends between slow instructions without jumps, whoever runs them, if its gas pays
// for many.
func TestCanceledRunEndsBetweenSlowInstructions(t *testing.T) {
	callee := common.Address{19: 0xee}
	codes := map[string][]byte{
		"CODECOPY":       between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY),
		"CALLDATACOPY":   between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CALLDATACOPY),
		"RETURNDATACOPY": between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.RETURNDATACOPY),
		"EXTCODECOPY":    between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.ADDRESS, vm.EXTCODECOPY),
		"MCOPY":          between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.MCOPY),
		"EXP":            between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.EXP, vm.POP),
		"calls that cannot pay": between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY,
			vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CALLVALUE, vm.NOT, vm.PUSH0, vm.GAS, vm.CALL, vm.POP),
	}
	create := func(code []byte) []byte {
		return program.New().Mstore(code, 0).Push(len(code)).Push(0).Push(0).Op(vm.CREATE).Bytes()
	}
	ways := map[string]func(code []byte) (main []byte, message Message){
		"call": func(code []byte) ([]byte, Message) { return code, Message{To: &contract} },
		"call by a call": func(code []byte) ([]byte, Message) {
			return program.New().Call(nil, callee, 0, 0, 0, 0, 0).Bytes(), Message{To: &contract}
		},
		"creation":        func(code []byte) ([]byte, Message) { return nil, Message{Data: code} },
		"nested creation": func(code []byte) ([]byte, Message) { return create(code), Message{To: &contract} },
	}
	for name, code := range codes {
		for way, arrange := range ways {
			for _, traced := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, traced %t", name, way, traced), func(t *testing.T) {
					main, message := arrange(code)
					w := newWorld()
					w.put(contract, 1, main)
					w.put(callee, 1, code)
					leaveBetween(t, newCaller(t), w, message, traced)
				})
			}
		}
	}
}

// Immediates of EIP-8024 are no instructions that end a run, and those that are not valid are not skipped.
func TestCanceledRunEndsBetweenImmediates(t *testing.T) {
	config := osakaConfig()
	config.AmsterdamTime = new(uint64)
	e, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	codes := make(map[string][]byte)
	for op, immediates := range map[vm.OpCode][]vm.OpCode{
		vm.DUPN:     {vm.STOP, vm.KECCAK256, vm.JUMP, vm.JUMPI, 90, 128, vm.REVERT, vm.INVALID, vm.SELFDESTRUCT},
		vm.SWAPN:    {vm.STOP, vm.KECCAK256, vm.JUMP, vm.JUMPI, 90, 128, vm.REVERT, vm.INVALID, vm.SELFDESTRUCT},
		vm.EXCHANGE: {vm.STOP, vm.KECCAK256, 81, 128, vm.REVERT, vm.INVALID, vm.SELFDESTRUCT},
	} {
		for _, immediate := range immediates {
			deep := bytes.Repeat([]byte{byte(vm.PUSH0)}, 300)
			codes[fmt.Sprintf("%v %#x", op, byte(immediate))] = append(deep, between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY, op, immediate)...)
		}
	}
	for _, op := range []vm.OpCode{vm.DUPN, vm.SWAPN, vm.EXCHANGE} {
		codes[op.String()+" PUSH32"] = hidden(op)
	}
	for name, code := range codes {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.put(contract, 1, code)
			leaveBetween(t, e, w, Message{To: &contract}, false)
		})
	}
}

// hidden returns code with copies that are data for a scan that skips the invalid immediate PUSH32 of op: it
// begins 32 bytes later what is data for the EVM, and ends with PUSH32, as the data of each PUSH1 does.
func hidden(op vm.OpCode) []byte {
	p := program.New().Push(37).Op(vm.JUMP, op, vm.PUSH32).Append(make([]byte, 31)).Op(vm.PUSH32)
	p.Op(vm.JUMPDEST).Push(uint64(askedFirst)).Op(vm.BLOCKHASH, vm.POP).Append(bytes.Repeat([]byte{byte(vm.JUMPDEST)}, 25)).Op(vm.PUSH1, vm.PUSH32)
	for range slowStretch {
		p.Op(vm.JUMPDEST, vm.JUMPDEST, vm.JUMPDEST)
		for range 7 {
			p.Op(vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY)
		}
		p.Op(vm.PUSH1, vm.PUSH32)
	}
	return p.Push(uint64(askedLast)).Op(vm.BLOCKHASH, vm.POP, vm.STOP).Bytes()
}

// leaveBetween runs a message, whose client leaves when the first hash is asked for, and expects that the last one is not.
func leaveBetween(t *testing.T, e *Executor, w *world, message Message, traced bool) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	at := w.at()
	var s *simulation
	began := false
	at.Hashes = askedHashes(func(number uint64) {
		if number == askedLast {
			t.Error("the run went on to its end")
		}
		began = true
		leave()
		for machine := s.state.memory.machine; !machine.Cancelled(); {
			runtime.Gosched()
		}
	})
	s = e.newSimulation(ctx, at)
	s.lasting = traced
	message.Gas = ptr[uint64](unwatchedGas + 1)
	err := s.do(CallOptions{}, func(s *simulation) error {
		if traced {
			return s.trace(ctx, &message, Tracer{Hooks: new(tracing.Hooks), Stop: func(error) {}})
		}
		m, err := s.message(&message)
		if err == nil {
			_, err = s.try(m, nil)
		}
		return err
	})
	if !traced && !errors.Is(err, errAborted) || traced && err != nil {
		t.Errorf("ended with %v", err)
	}
	if !began {
		t.Error("the code did not run")
	}
}

// Instructions of ordinary code do not look whether the run is canceled, and nor do those of a call with little gas.
func TestOrdinaryCodeIsNotWatched(t *testing.T) {
	jumps := program.New()
	for range 3 * slowStretch {
		jumps.Op(vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY)
		_, at := jumps.Jumpdest()
		jumps.Push(0).Push(at).Op(vm.JUMPI)
	}
	pushes := program.New()
	for range slowStretch + 1 {
		pushes.Op(vm.PUSH1, vm.CODECOPY, vm.POP)
	}
	ends := program.New()
	for range slowStretch + 1 {
		ends.Op(vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY, vm.PUSH0, vm.PUSH0, vm.RETURN)
	}
	copies := between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY)
	for _, test := range []struct {
		name string
		code []byte
		gas  uint64
		want bool
	}{
		{"jumps between the copies", jumps.Bytes(), unwatchedGas + 1, false},
		{"copies that are data", pushes.Bytes(), unwatchedGas + 1, false},
		{"ends between the copies", ends.Bytes(), unwatchedGas + 1, false},
		{"few copies", between(slowStretch, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY), unwatchedGas + 1, false},
		{"little gas", copies, unwatchedGas, false},
		{"many copies", copies, unwatchedGas + 1, true},
	} {
		for _, created := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, created %t", test.name, created), func(t *testing.T) {
				w := newWorld()
				w.put(contract, 1, test.code)
				message := &Message{To: &contract, Gas: &test.gas}
				if created {
					message.To, message.Data = nil, test.code
				}
				s := newCaller(t).newSimulation(t.Context(), w.at())
				err := s.do(CallOptions{}, func(s *simulation) error {
					m, err := s.message(message)
					if err != nil {
						return err
					}
					machine := s.machine(m, &s.state, nil)
					defer machine.Release()
					if _, err = core.ApplyMessage(machine, m, nil); err != nil {
						return err
					}
					if got := machine.Config.Tracer != nil; got != test.want {
						t.Errorf("each instruction looks: %t, want %t", got, test.want)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// countedReads counts the accounts that are read.
type countedReads struct {
	*world
	accounts int
}

// Account implements evm.State.
func (c *countedReads) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	c.accounts++
	return c.world.Account(ctx, address)
}

// Code is searched once for all calls, by its hash, whichever account has it and wherever it comes from. That reads no
// account more than once.
func TestCodeIsSearchedOnce(t *testing.T) {
	straight := between(slowStretch+1, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.CODECOPY)
	ordinary := returning(vm.ADDRESS)
	callee := common.Address{19: 0xee}
	calling := func(address common.Address) []byte { return program.New().Call(nil, address, 0, 0, 0, 0, 0).Bytes() }
	first := append(bytes.Repeat([]byte{byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.PUSH0), byte(vm.CODECOPY)}, slowStretch+1), calling(callee)...)
	delegation := types.AddressToDelegation(callee)
	for _, lasting := range []bool{false, true} {
		for name, test := range map[string]struct {
			main, callee []byte
			override     *[]byte
			want         map[string]bool // searched codes
		}{
			"slow":           {main: straight, want: map[string]bool{string(straight): true}},
			"ordinary":       {main: ordinary, want: map[string]bool{string(ordinary): false}},
			"callee":         {main: calling(callee), callee: straight, want: map[string]bool{string(calling(callee)): false, string(straight): true}},
			"callee of slow": {main: first, callee: ordinary, want: map[string]bool{string(first): true}},
			"delegation":     {main: delegation, callee: straight, want: map[string]bool{string(delegation): false, string(straight): true}},
			"override":       {main: ordinary, override: &straight, want: map[string]bool{string(straight): true}},
			"no code":        {want: map[string]bool{}},
		} {
			t.Run(fmt.Sprintf("%s, lasting %t", name, lasting), func(t *testing.T) {
				e, w := newCaller(t), newWorld()
				w.put(contract, 1, test.main)
				w.put(callee, 1, test.callee)
				options := CallOptions{}
				if test.override != nil {
					options.State = StateOverrides{contract: {Code: test.override}}
				}
				// run returns whether each instruction looked at the end, and how many accounts were read.
				run := func(gas uint64) (watched bool, read int) {
					reads := &countedReads{world: w}
					at := w.at()
					at.State = reads
					s := e.newSimulation(t.Context(), at)
					defer s.release()
					s.lasting = lasting
					if err := s.do(options, func(s *simulation) error {
						m, err := s.message(&Message{To: &contract, Gas: &gas})
						if err != nil {
							return err
						}
						machine := s.machine(m, &s.state, nil)
						defer machine.Release()
						_, err = core.ApplyMessage(machine, m, nil)
						watched = machine.Config.Tracer != nil
						return err
					}); err != nil {
						t.Fatal(err)
					}
					return watched, reads.accounts
				}
				_, least := run(unwatchedGas)
				if e.slow.Len() != 0 {
					t.Error("code was searched in a call with little gas")
				}
				want := false
				for _, slow := range test.want {
					want = want || slow
				}
				for range 2 {
					if watched, read := run(unwatchedGas + 1); watched != want || read != least {
						t.Errorf("each instruction looks: %t, want %t; %d accounts read, want %d", watched, want, read, least)
					}
				}
				if searched := e.slow.Len(); searched != len(test.want) {
					t.Errorf("%d codes were searched, want %d", searched, len(test.want))
				}
				for code, slow := range test.want {
					hash := crypto.Keccak256Hash([]byte(code))
					if got, known := e.slow.Get(hash); !known || got != slow {
						t.Errorf("remembered %t (%t), want %t", got, known, slow)
					}
					e.slow.Add(hash, !want) // it decides, not another search
				}
				if watched, _ := run(unwatchedGas + 1); len(test.want) > 0 && watched == want {
					t.Error("the code was searched again")
				}
			})
		}
	}
}
