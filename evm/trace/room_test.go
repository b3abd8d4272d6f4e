package trace

import (
	"context"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// ample is a room without an end.
type ample struct{}

func (ample) Check(int) error { return nil }

// reverting returns what a contract returns that reverts with a reason.
func reverting(t *testing.T, reason string) []byte {
	t.Helper()
	text, err := abi.NewType("string", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := abi.Arguments{{Type: text}}.Pack(reason)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{0x08, 0xc3, 0x79, 0xa0}, packed...)
}

// The reasons of reverted calls count as long as they are in the answer, where a byte can take six.
func TestRevertReasonsCount(t *testing.T) {
	output := reverting(t, strings.Repeat("\x01", 5000))
	c, err := newCallTracer(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	const deep = 20
	for range 2 { // the memory of the first run is used again
		c.begin(0, ample{}, cancel)
		for depth := range deep {
			c.onEnter(depth, byte(vm.CALL), common.Address{1}, common.Address{2}, nil, 1000, new(big.Int))
		}
		for depth := range deep {
			c.onExit(deep-1-depth, output, 10, vm.ErrExecutionReverted, true)
		}
		out, err := c.appendResult(nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(out), `"revertReason":"\u0001\u0001`); n != deep {
			t.Fatalf("%d reasons in the answer, expected %d", n, deep)
		}
		if c.length < len(out) {
			t.Errorf("an answer of %d bytes was counted as %d", len(out), c.length)
		}
	}
}

// The addresses of Parity's frames count: those of deep frames are longer than all else.
func TestTraceAddressesCount(t *testing.T) {
	_, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	f := newFlatTracer(nil, 0, ample{}, cancel)
	const deep = 300
	enter := func(depth int) {
		f.onEnter(depth, byte(vm.CALL), common.Address{1}, common.Address{2}, nil, 1000, new(big.Int))
	}
	for depth := range deep {
		enter(depth)
	}
	for range 500 {
		enter(deep)
		f.exit(deep, nil, 10, nil, false)
	}
	for depth := range deep {
		f.exit(deep-1-depth, nil, 10, nil, false)
	}
	frames, err := f.result(nil)
	if err != nil {
		t.Fatal(err)
	}
	levels, length := 0, 0
	for i := range frames {
		levels, length = levels+len(frames[i].TraceAddress), length+len(frames[i].Append(nil))
	}
	if got := f.length; got < 8*levels || got < length {
		t.Errorf("%d levels of addresses and an answer of %d bytes were counted as %d bytes", levels, length, got)
	}
}

// TestWrongOptions: the errors for options of a wrong type name the option, as the library's do.
func TestWrongOptions(t *testing.T) {
	for _, c := range []struct{ tracer, options, want string }{
		{callTracerName, `{"onlyTopCall":"yes"}`, "json: cannot unmarshal string into Go struct field callTracerConfig.onlyTopCall of type bool"},
		{callTracerName, `[]`, "json: cannot unmarshal array into Go value of type trace.callTracerConfig"},
		{prestateTracerName, `{"diffMode":1}`, "json: cannot unmarshal number into Go struct field PrestateTracerConfig.diffMode of type bool"},
		{prestateTracerName, `"diff"`, "json: cannot unmarshal string into Go value of type native.PrestateTracerConfig"},
	} {
		_, err := Native(c.tracer, c.options, params.AllDevChainProtocolChanges).tracer(nil, nil, nil, nil)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s with %s: %v, want %s", c.tracer, c.options, err, c.want)
		}
	}
}
