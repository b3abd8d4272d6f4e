package main

import (
	"encoding/json"
	"errors"
	"testing"

	"ashlar/internal/node"
	"ashlar/jsonrpc"
)

// Limits, absent things and lost connections are no answers; a call that its contract refuses is one.
func TestCheckAnswer(t *testing.T) {
	for _, test := range []struct {
		method, result string
		err            error
		ok             bool
	}{
		{"eth_getBalance", `"0x1"`, nil, true},
		{"eth_getTransactionReceipt", "null", nil, false},
		{"eth_getBalance", "", &node.Error{Code: jsonrpc.CodeServer}, false},
		{"eth_call", "", &node.Error{Code: jsonrpc.CodeReverted}, true},
		{"eth_call", "", &node.Error{Code: jsonrpc.CodeServer}, true},
		{"eth_call", "", &node.Error{Code: jsonrpc.CodeLimitExceeded}, false},
		{"eth_call", "", errors.New("connection refused"), false},
	} {
		if err := checkAnswer(test.method, json.RawMessage(test.result), test.err); (err == nil) != test.ok {
			t.Errorf("%s: %q, %v: got error %v, want ok %v", test.method, test.result, test.err, err, test.ok)
		}
	}
}
