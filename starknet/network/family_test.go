package network

import (
	"strings"
	"testing"
)

func TestChainID(t *testing.T) {
	for name, want := range map[string]string{"mainnet": "SN_MAIN", "sepolia": "SN_SEPOLIA", "my-net": "MY_NET", strings.Repeat("a", 63): strings.Repeat("A", 31)} {
		if got := chainID(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
