package main

import "testing"

// Only results count as answers.
func TestCheckAnswer(t *testing.T) {
	for _, test := range []struct {
		status int
		answer string
		ok     bool
	}{
		{200, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, true},
		{200, `{"jsonrpc":"2.0","id":1,"result":{"error":"out of gas"}}`, true},
		{200, `{"jsonrpc":"2.0","id":1,"result":null}`, false},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"too many requests"}}`, false},
		{503, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, false},
		{503, "Service Unavailable", false},
		{200, "", false},
	} {
		if err := checkAnswer(test.status, []byte(test.answer)); (err == nil) != test.ok {
			t.Errorf("status %d, %q: got error %v, want ok %v", test.status, test.answer, err, test.ok)
		}
	}
}
