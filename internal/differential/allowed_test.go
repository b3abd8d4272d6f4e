package differential

import "testing"

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
