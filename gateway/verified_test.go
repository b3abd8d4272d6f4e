package gateway_test

import (
	"context"
	"strings"
	"testing"

	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

// verifying is a network with a method for each verification, and others that weaken it.
func verifying() gateway.Network {
	constant := func(result string) jsonrpc.Handler {
		return func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, result...), nil }
	}
	failing := func(code int) jsonrpc.Handler {
		return func(_ context.Context, _, out []byte) ([]byte, error) {
			return out, &jsonrpc.Error{Code: code, Message: "refused"}
		}
	}
	methods := jsonrpctest.Methods(jsonrpc.Handlers{"test_unstated": constant("1")})
	for name, handler := range map[string]jsonrpc.Handler{
		"test_found": constant("1").FoundOnly(), "test_null": constant("null").FoundOnly(),
		"test_failed": failing(jsonrpc.CodeServer).FoundOnly(), "test_reverted": failing(jsonrpc.CodeReverted).FoundOnly(),
	} {
		method := jsonrpctest.Method(name, handler)
		method.Verified = jsonrpc.Proven
		methods = jsonrpctest.With(methods, method)
	}
	for name, verified := range map[string]jsonrpc.Verification{"test_header": jsonrpc.ByHeader, "test_executed": jsonrpc.Executed} {
		method := jsonrpctest.Method(name, constant("null"))
		method.Verified = verified
		methods = jsonrpctest.With(methods, method)
	}
	return gateway.Network{Name: "alpha", Methods: methods}
}

// An answer says how it was verified, a batch as its weakest answer. Pages can read it.
func TestAnswersSayHowTheyWereVerified(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{verifying()}, Origins: []string{gateway.AnyOrigin}}, 0)
	batch := func(names ...string) string {
		calls := make([]string, len(names))
		for i, name := range names {
			calls[i] = call(name)
		}
		return "[" + strings.Join(calls, ",") + "]"
	}
	for body, want := range map[string]string{
		call("test_executed"):                      "executed",
		call("test_found"):                         "proven",
		call("test_reverted"):                      "proven",
		call("test_header"):                        "header",
		call("test_null"):                          "none",
		call("test_failed"):                        "none",
		call("test_unstated"):                      "none",
		call("test_missing"):                       "none",
		"{":                                        "none",
		batch("test_executed", "test_executed"):    "executed",
		batch("test_executed", "test_found"):       "proven",
		batch("test_header", "test_executed"):      "header",
		batch("test_executed", "test_null"):        "none",
		batch("test_unstated", "test_executed"):    "none",
		batch("test_executed", "test_missing"):     "executed", // an unknown method says nothing of the chain
		`{"jsonrpc":"2.0","method":"test_found"}`:  "proven",
		batch("test_null", "test_null", "test_ok"): "none",
	} {
		response, answer := s.post(body, "Origin", "https://wallet.test")
		if got := response.Header.Values("Ashlar-Verified"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: verified %q, want %s; the answer %s", body, got, want, answer)
		}
		if exposed := response.Header.Get("Access-Control-Expose-Headers"); exposed != "Ashlar-Verified" {
			t.Errorf("%s: exposed to pages: %q", body, exposed)
		}
	}
	if response, _ := s.ask("POST", "/v3/", call("test_executed")); response.Header.Get("Ashlar-Verified") != "" {
		t.Errorf("a request without a key: headers %v", response.Header)
	}
}
