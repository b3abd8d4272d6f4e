package jsonrpc

import (
	"slices"
	"testing"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		code    int
		message string
		want    string
	}{
		{-32005, "daily quota of the account exceeded: reached the quota of 3000 credits", "quota"},
		{-32005, "request rate exceeded: the rate limit is 10 credits per second", "rate"},
		{-32005, "the server is busy: try again later", "busy"},
		{-32005, "the store cannot be reached: try again later", "store"},
		{-32005, "the network is being taken out of service: try again later", "unserved"},
		{-32005, "too many filters: expected at most 100", "limit"},
		{-32002, "request timed out", "timeout"},
		{-32002, "method not allowed: …", "forbidden"},
		{-32000, "execution aborted (memory limit of 128 MiB)", "memory"},
		{-32000, "execution aborted (timeout = 5s)", "aborted"},
		{-32000, "finalized block not found", "unsafe"},
		{-32000, "header for hash not found", "no-hash"},
		{-32600, "invalid request", "request"},
		{-38010, "nonce too low: address 0x01, tx: 1 state: 2", "nonce-low"},
		{-38014, "insufficient funds for gas * price + value", "funds"},
		{-38023, "account 0x01 was moved twice", "precompile-twice"},
		{-38026, "too many blocks", "call-limit"},
		{3, "execution reverted: no", "reverted"},
		{4, "The transaction was added to the transaction pool but wasn't processed in 20s", "not-included"},
	} {
		if e, ok := Explain(c.code, c.message); !ok || e.Name != c.want {
			t.Errorf("%d %q is explained as %q, expected %q", c.code, c.message, e.Name, c.want)
		}
	}
	if e, ok := Explain(7, "x"); ok {
		t.Errorf("an unknown code is explained as %q", e.Name)
	}
}

// Every explanation can be reached: an earlier one does not stand for it.
func TestExplanationsAreReached(t *testing.T) {
	var names []string
	for _, e := range Explanations() {
		if slices.Contains(names, e.Name) {
			t.Errorf("%s occurs twice", e.Name)
		}
		names = append(names, e.Name)
		if found, _ := Explain(e.Code, e.Message); found.Name != e.Name {
			t.Errorf("%d %q is explained as %q, expected %q", e.Code, e.Message, found.Name, e.Name)
		}
	}
}
