package script

import (
	"bytes"
	"context"
	"syscall"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/trace"

	"github.com/ethereum/go-ethereum/common"
)

// gone is the standard input of a worker that has ended.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// codes is a state of which only code is read.
type codes struct{ evm.State }

func (codes) Code(context.Context, common.Hash) ([]byte, error) { return nil, nil }

// TestLastWords: a worker that ends while a read of its is answered has said why.
func TestLastWords(t *testing.T) {
	var said bytes.Buffer
	worker := newWire(nil, &said)
	if err := worker.send(readCode, make([]byte, common.HashLength)); err != nil {
		t.Fatal(err)
	}
	if err := worker.send(endedMessage, []byte(trace.ErrTime.Error())); err != nil {
		t.Fatal(err)
	}
	traces := &Traces{wire: newWire(&said, gone{}), ctx: t.Context(), question: &Question{At: execute.At{State: codes{}}}}
	if _, err := traces.Append(nil); err == nil || err.Error() != trace.ErrTime.Error() {
		t.Errorf("%v, expected %v", err, trace.ErrTime)
	}
}
