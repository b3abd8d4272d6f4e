package eth_test

import (
	"context"
	"strings"
	"testing"

	"ashlar/eth"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// described describes the methods with examples that are all the same.
func described() *eth.Description {
	one := jsonrpc.Given("0x1")
	return eth.Describe(eth.Examples{
		Address: one, Block: one, BlockHash: one, Transaction: one, Index: one, RawTransaction: one,
		Filter: one, Watched: one, Call: one, CallBlock: one, Simulation: one,
	})
}

func nothing(_ context.Context, _, out []byte) ([]byte, error) { return append(out, "null"...), nil }

// TestMethod: an answer replaces what it has of a description, and nothing else.
func TestMethod(t *testing.T) {
	d := described()
	plain := d.Method("eth_getBalance", eth.Own{Handler: nothing})
	if plain.Name != "eth_getBalance" || plain.Summary == "" || len(plain.Params) != 2 || plain.Cost != jsonrpc.Light(10) || plain.Result.Schema != eth.Quantity {
		t.Errorf("described as %+v", plain)
	}
	errs := []*jsonrpc.Error{{Message: "no"}}
	params := []jsonrpc.Param{d.Address}
	own := d.Method("eth_getBalance", eth.Own{
		Handler: nothing, Cost: jsonrpc.Heavy(7), Errors: errs, Concerns: jsonrpc.AnyContract, Params: params, Result: schema.Any, ExampleFails: "always",
	})
	if own.Cost != jsonrpc.Heavy(7) || len(own.Errors) != 1 || len(own.Params) != 1 || own.Result != eth.Result("Balance", schema.Any) || own.ExampleFails != "always" {
		t.Errorf("with an answer of its own: %+v", own)
	}
	if again := d.Method("eth_getBalance", eth.Own{Handler: nothing}); again.Cost != plain.Cost || len(again.Params) != 2 || again.Errors != nil {
		t.Errorf("after another answer: %+v", again)
	}
}

// TestUnknownMethod: a name without a description is refused, not served without one.
func TestUnknownMethod(t *testing.T) {
	method := described().Method("eth_getBalanse", eth.Own{Handler: nothing, Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Result: schema.Any})
	if _, err := jsonrpc.NewMethods(method); err == nil || !strings.Contains(err.Error(), `"eth_getBalanse": missing summary`) {
		t.Errorf("NewMethods: %v", err)
	}
}

// TestAlike: what all families answer alike needs nothing from them.
func TestAlike(t *testing.T) {
	methods, err := jsonrpc.NewMethods(described().Alike()...)
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]string{
		"eth_accounts": "[]", "eth_pendingTransactions": "[]", "net_listening": "true", "net_peerCount": `"0x0"`,
		"web3_sha3": `"0x1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8"`, // of "hello", by any tool
	} {
		found := methods.Find(method)
		if found == nil {
			t.Errorf("%s: not described", method)
			continue
		}
		params, err := found.ExampleParams(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := found.Handler(t.Context(), params, nil); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", method, got, err, want)
		}
	}
}
