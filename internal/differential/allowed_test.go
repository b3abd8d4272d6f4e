package differential

import (
	"slices"
	"testing"

	"ashlar/internal/jsondiff"
)

func TestFreeWording(t *testing.T) {
	tests := []struct {
		geth, ashlar string
		free         bool
	}{
		{"invalid argument 0: json: cannot unmarshal", "invalid argument 0: hex string without 0x prefix", true},
		{"invalid argument 0: x", "invalid argument 1: x", false},
		{"invalid argument 0: x", "wrong", false},
		{"storage key too long", "invalid argument 1: too long", true},
		{"missing value for required argument 1", "invalid argument 1: missing", false},
		{"too many arguments, want at most 2", "invalid argument 2: unexpected", false},
		{"invalid block range params", "invalid argument 0: range", false},
		{"invalid argument 1: x", "missing value for required argument 1", true},
		{"invalid argument 1: x", "missing value for required argument 0", false},
		{"empty request", "missing value for required argument 0", true},
		{"empty request", "invalid argument 0: x", true},
		{"invalid argument 1: x", "too many arguments, want at most 3", true},
		{"invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other", "too many arguments, want at most 1", true},
		{"invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other", "invalid argument 0: x", false},
		{"cannot specify both", "too many arguments, want at most 1", false},
	}
	for _, test := range tests {
		if got := freeWording(test.geth, test.ashlar); got != test.free {
			t.Errorf("%q for %q: got %t, want %t", test.ashlar, test.geth, got, test.free)
		}
	}
}

func TestTipOfFilledTransaction(t *testing.T) {
	filled := func(most, tip, value string) answer {
		return answer{result: map[string]any{"raw": "0x" + most[2:] + value[2:], "tx": map[string]any{"maxFeePerGas": most, "maxPriorityFeePerGas": tip, "value": value}}}
	}
	unnamed := question{Method: "eth_fillTransaction", Params: []any{object{"to": "0x01"}}}
	named := question{Method: "eth_fillTransaction", Params: []any{object{"maxPriorityFeePerGas": "0x1"}}}
	for _, test := range []struct {
		name   string
		q      question
		ashlar answer
		free   bool
	}{
		{"another tip", unnamed, filled("0x24", "0x20", "0x1"), true},
		{"another tip, for the client's", named, filled("0x24", "0x20", "0x1"), false},
		{"more for the base fee", unnamed, filled("0x25", "0x20", "0x1"), false},
		{"another value", unnamed, filled("0x24", "0x20", "0x2"), false},
	} {
		geth, free := filled("0x14", "0x10", "0x1"), true
		for _, d := range jsondiff.Values(geth.result, test.ashlar.result) {
			free = free && slices.ContainsFunc(allowances(), func(a allowed) bool { return a.applies(test.q, geth, test.ashlar, d) })
		}
		if free != test.free {
			t.Errorf("%s: free is %t, want %t", test.name, free, test.free)
		}
	}
}

func TestNamesEmpty(t *testing.T) {
	for _, test := range []struct {
		params  []any
		message string
		want    bool
	}{
		{[]any{"", "0x1"}, `invalid argument 0: invalid hex or decimal integer ""`, true},
		{[]any{"0x1", nil}, "missing value for required argument 1", true},
		{[]any{"", "0x1"}, "invalid argument 1: x", false},
		{[]any{"0x1"}, "missing value for required argument 1", false},
		{[]any{nil}, "too many arguments, want at most 0", false},
	} {
		if got := namesEmpty(test.params, test.message); got != test.want {
			t.Errorf("%q of %v: got %t, want %t", test.message, test.params, got, test.want)
		}
	}
}
