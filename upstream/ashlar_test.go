package upstream

import "testing"

// A node can be another Ashlar, also an older one. The packages that send errors test what their present texts mean.
func TestTextsOfAshlar(t *testing.T) {
	for _, c := range []struct {
		code    int
		text    string
		means   Means
		tooMuch bool
	}{
		{-32000, "the state of block 5 is not stored (the first block with state is 12), and the answer cannot be proven: no upstream can answer", MeansFailure, false},
		{-32000, "historical state is not available at block 5 (the first block with state is 12), and the answer cannot be proven: no upstream can answer", MeansFailure, false},
		{-32000, "the answer cannot be proven: no upstream can answer for 30s: all are set aside because of false answers", MeansFailure, false},
		{-32000, "the answer cannot be proven: the node's answer is false", MeansFailure, false},
		{-32000, "the answer cannot be proven: no upstream has the method", MeansAnswer, false},
		{-32000, "no node took the transaction: no upstream can answer", MeansFailure, false},
		{-32000, "there is no head yet: HTTP status 502: pruned", MeansFailure, false},
		{-32000, "the network has no head yet", MeansFailure, false},
		{-32005, "the network is being taken out of service", MeansFailure, false},
		{-32005, "request rate exceeded", MeansFailure, false},
		{-32005, "daily quota exceeded", MeansFailure, false},
		{4444, "pruned history unavailable", MeansPruned, false},
		// The name of a network says nothing.
		{-32002, "method not allowed: debug_x is not available to this key: mainnet-archive restricts it to keys whose rules list it", MeansUnsupported, false},
		{-32002, "method not allowed: eth_getLogs is not available to this key: narrow restricts it to keys whose rules list it", MeansUnsupported, false},
		{-32002, "network not allowed: the key's rules do not list mainnet-archive", MeansFailure, false},
		{-32002, "network not allowed: the key's rules do not list narrow-capacity", MeansFailure, false},
	} {
		e := &NodeError{Code: c.code, Message: c.text}
		if means, tooMuch := Meaning(e), IsTooMuch(e); means != c.means || tooMuch != c.tooMuch {
			t.Errorf("%d %s: means %d, too much: %t; expected %d, %t", c.code, c.text, means, tooMuch, c.means, c.tooMuch)
		}
	}
}
