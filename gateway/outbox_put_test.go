package gateway

import (
	"bytes"
	"errors"
	"testing"

	"ashlar/jsonrpc"
	"ashlar/limit"
)

// A message of a stream that is longer than the queue is sent if none waits before it. What follows does not fit.
func TestOutboxTakesOneLongMessage(t *testing.T) {
	var sent int
	o := outbox{
		maxMessages: 10, maxBytes: 100, memory: limit.NewBudget(1 << 20), holding: new(limit.Holding), changed: make(chan struct{}, 1),
		write: func(parts [][]byte) error { sent += len(bytes.Join(parts, nil)); return nil },
	}
	message := func(length int) outgoing { return outgoing{parts: [][]byte{make([]byte, length)}, taken: 1} }
	if first, err := o.put(message(1000)); err != nil || !first {
		t.Fatalf("the first message: %t %v", first, err)
	}
	if _, err := o.put(message(1)); !errors.Is(err, jsonrpc.ErrSlow) {
		t.Errorf("a message behind it: %v, expected %v", err, jsonrpc.ErrSlow)
	}
	o.drain()
	if _, err := o.put(message(60)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.put(message(60)); !errors.Is(err, jsonrpc.ErrSlow) {
		t.Errorf("a second message that does not fit: %v, expected %v", err, jsonrpc.ErrSlow)
	}
	if o.drain(); sent != 1060 {
		t.Errorf("%d bytes were sent, expected 1060", sent)
	}
}
