package gateway_test

import (
	"fmt"
	"os"
	"testing"

	"ashlar/gateway"
)

// writeCalls returns how many times this process has called write or writev.
func writeCalls(t *testing.T) (calls int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	var read, written, reads int
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d", &read, &written, &reads, &calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// An answer on a WebSocket that is longer than the connection's buffer is written by one call.
func TestLongAnswerIsOneWrite(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	c := s.dial(nil)
	const answers = 200
	before := writeCalls(t)
	for range answers {
		c.send(call("test_large"))
		c.receive()
	}
	if calls := writeCalls(t) - before; calls > answers*5/2 { // the client writes once too
		t.Errorf("%d calls wrote %d requests and answers, expected two each", calls, answers)
	}
}
