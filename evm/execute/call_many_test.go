package execute

import (
	"context"
	"encoding/hex"
	"errors"
	"math/big"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/holiman/uint256"
)

// bundled returns what the calls of bundles return, as hex.
func bundled(t *testing.T, e *Executor, at At, options CallOptions, bundles ...Bundle) (outputs []string) {
	t.Helper()
	err := e.CallBundles(t.Context(), at, bundles, options, func(_, _ int, result BundleResult) error {
		if result.Err != nil {
			t.Error(result.Err)
		}
		outputs = append(outputs, hex.EncodeToString(result.Output))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return outputs
}

// Bundles after the block find its hash: they see the blocks that follow it.
func TestBundlesFindTheHashOfTheBlock(t *testing.T) {
	w := newWorld()
	before := program.New().Push(1).Op(vm.NUMBER, vm.SUB, vm.BLOCKHASH).Push(0).Op(vm.MSTORE).Return(0, 32).Bytes()
	w.put(contract, 0, before)
	at := w.at()
	call := []*Message{{To: &contract}}
	got := bundled(t, newCaller(t), at, CallOptions{}, Bundle{Calls: call}, Bundle{Calls: call}, Bundle{Calls: call},
		Bundle{Calls: call, Block: BlockOverrides{Number: uint256.NewInt(1001)}})
	want := []common.Hash{at.Header.ParentHash, at.Header.Hash(), {}, at.Header.Hash()}
	for i := range want {
		if got[i] != want[i].Hex()[2:] {
			t.Errorf("bundle %d: the hash of the block before is %s, want %x", i, got[i], want[i])
		}
	}
}

// The precompiled contracts of a bundle are those of the time that it sees, as are its instructions.
func TestBundlesHavePrecompilesOfTheirTime(t *testing.T) {
	config := osakaConfig()
	config.OsakaTime = ptr[uint64](20000)
	e, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	identity, verify := common.BytesToAddress([]byte{4}), common.BytesToAddress([]byte{1, 0})
	// A valid signature of P256VERIFY, for which it returns 1.
	input := common.FromHex("4cee90eb86eaa050036147a12d49004b6b9c72bd725d39d4785011fe190f0b4da73bd4903f0ce3b639bbbf6e8e80d16931ff4bcf5993d58468e8fb19086e8cac36dbcd03009df8c59286b162af3bd7fcc0450c9aa81be5d10d312af6c66b1d604aebd3099c618202fcfe16ae7770b0c49ab5eadf74b754204a3bb6060e44eff37618b065f9832de4ca6ca971a7a1adc826d0f7c00181a5fb2ddf79ae00b4e10e")
	calls := []*Message{{To: &verify, Data: input}, {To: &identity, Data: []byte{7}}}
	later := BlockOverrides{Time: ptr[uint64](20000)}
	one := word(1).Hex()[2:]
	for name, state := range map[string]StateOverrides{
		"without overrides": nil, "with overrides": {nobody: {Nonce: ptr[uint64](1)}},
	} {
		got := bundled(t, e, w.at(), CallOptions{State: state}, Bundle{Calls: calls}, Bundle{Calls: calls, Block: later})
		for i, want := range []string{"", "07", one, "07"} {
			if got[i] != want {
				t.Errorf("%s: call %d returns %q, want %q", name, i, got[i], want)
			}
		}
	}
	moved := StateOverrides{identity: {MovePrecompileTo: &nobody}}
	calls = []*Message{{To: &nobody, Data: []byte{7}}, {To: &identity, Data: []byte{7}}}
	got := bundled(t, e, w.at(), CallOptions{State: moved}, Bundle{Calls: calls}, Bundle{Calls: calls, Block: later})
	for i, want := range []string{"07", "", "07", ""} {
		if got[i] != want {
			t.Errorf("moved: call %d returns %q, want %q", i, got[i], want)
		}
	}
}

// The time of all traced messages together ends the one that runs, and no other begins.
func TestTracedBundlesEnd(t *testing.T) {
	w := newWorld()
	w.put(contract, 0, looping(func(*program.Program) {}))
	for name, run := range map[string]func(context.Context, *Executor, CallOptions, func(TraceFunc) error) error{
		"bundle": func(ctx context.Context, e *Executor, options CallOptions, run func(TraceFunc) error) error {
			calls := slices.Repeat([]*Message{{To: &contract}}, 5)
			return e.TraceBundles(ctx, w.at(), []Bundle{{Calls: calls}}, options, func(_, _ int, trace TraceFunc) error { return run(trace) })
		},
		"calls": func(ctx context.Context, e *Executor, options CallOptions, run func(TraceFunc) error) error {
			return e.TraceCalls(ctx, w.at(), options, func(call func(context.Context, *Message, Tracer) error) error {
				for range 5 {
					if err := run(func(ctx context.Context, tracer Tracer) error { return call(ctx, &Message{To: &contract}, tracer) }); err != nil {
						return err
					}
				}
				return nil
			})
		},
	} {
		// In a bubble, the time passes in the first message only, however slow the machine is.
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := CallOptions{Time: time.Second}
				begun, stopped := 0, []error(nil)
				hooks := &tracing.Hooks{OnEnter: func(int, byte, common.Address, common.Address, []byte, uint64, *big.Int) {
					begun++
					time.Sleep(options.Time)
					synctest.Wait()
				}}
				err := run(t.Context(), newCaller(t), options, func(trace TraceFunc) error {
					return trace(t.Context(), Tracer{Hooks: hooks, Stop: func(err error) { stopped = append(stopped, err) }})
				})
				if want := "execution aborted (timeout = 1s)"; err == nil || err.Error() != want {
					t.Errorf("%v, expected %s", err, want)
				}
				if begun != 1 {
					t.Errorf("%d messages have begun, expected 1", begun)
				}
				if len(stopped) != 1 || !errors.Is(stopped[0], context.DeadlineExceeded) {
					t.Errorf("the tracer is stopped with %v, expected once, as the time is over", stopped)
				}
			})
		})
	}
}
