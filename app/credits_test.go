package app

import "testing"

// What may read many blocks, or run something, waits in the line of heavy calls.
func TestHeavyMethods(t *testing.T) {
	costs := new(Config).costs()
	for method, heavy := range map[string]bool{
		"eth_call": true, "eth_getLogs": true, "eth_feeHistory": true, "rollup_getEvents": true,
		"eth_getBalance": false, "eth_getBlockByNumber": false, "eth_gasPrice": false, "made_up": false,
	} {
		if got := costs(method).Heavy; got != heavy {
			t.Errorf("%s is heavy: %t, want %t", method, got, heavy)
		}
	}
}
