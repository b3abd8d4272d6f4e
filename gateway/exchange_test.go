package gateway_test

import (
	"context"
	"testing"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

// A method sees the same caller over every transport.
func TestMethodsKnowTheirCaller(t *testing.T) {
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_caller", func(ctx context.Context, _, out []byte) ([]byte, error) {
		return jsonrpc.AppendString(out, jsonrpc.CallerFrom(ctx)), nil
	}))
	s := start(t, gateway.Config{Networks: []gateway.Network{n}}, 0)
	want := `{"jsonrpc":"2.0","id":1,"result":"` + account.KeyID{1}.String() + `"}`
	if _, got := s.post(call("test_caller")); got != want {
		t.Errorf("over HTTP: %s, expected %s", got, want)
	}
	c := s.dial(nil)
	c.send(call("test_caller"))
	if got := c.receive(); got != want {
		t.Errorf("by WebSocket: %s, expected %s", got, want)
	}
}
