package app

import (
	"strings"
	"testing"

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/kv"
)

// A network that is configured without its beginning, such as with a source alone, says what is missing.
func TestNetworkThatDoesNotBegin(t *testing.T) {
	for _, family := range []string{"", "evm", "starknet"} {
		_, err := openServed(t.Context(), store.Dir(t.TempDir()), "new", config.Network{Family: family}, kv.Options{})
		if err == nil || !strings.Contains(err.Error(), "import it first (a new network begins with the genesis in its configuration, the entry networks.new.genesis; one of Starknet with networks.new.source)") {
			t.Errorf("family %q: %v", family, err)
		}
	}
}
