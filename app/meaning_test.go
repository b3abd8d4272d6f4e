package app

import (
	"testing"

	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/upstream"
)

// Another Ashlar in front learns from the text of an error what it means. Errors that methods are documented to send are answers
// of the chain, except for those listed here. The packages test the errors that are not documented.
func TestMeaningOfDocumentedErrors(t *testing.T) {
	expected := map[string]upstream.Means{
		jsonrpc.PrunedMessage: upstream.MeansPruned,
		// Of a block that another node may have.
		query.ErrUnknownBlock.Error(): upstream.MeansPruned, query.ErrUnknownHash.Error(): upstream.MeansPruned, query.ErrNotCanonical.Error(): upstream.MeansPruned,
		query.ErrNoSafe.Error(): upstream.MeansPruned, query.ErrNoFinalized.Error(): upstream.MeansPruned,
		"unknown block": upstream.MeansPruned, "Block not found": upstream.MeansPruned, "block range extends beyond current head block": upstream.MeansPruned,
		"block 0x0000000000000000000000000000000000000000000000000000000000000000 not found": upstream.MeansPruned,

		"notifications not supported": upstream.MeansUnsupported,
		"the method is not available: this network has no trace index: it is made if the network is imported with trace_index": upstream.MeansUnsupported,

		"execution timeout": upstream.MeansFailure, "query timeout exceeded": upstream.MeansFailure, // except for eth_getLogs
	}
	tooMuch := map[string]bool{"query returned more than 10000 results": true, "query timeout exceeded": true, "invalid block range params": true}
	type text struct {
		code    int
		message string
	}
	checked, seen := make(map[text]bool), make(map[string]bool)
	for m := range methodsOfFamilies(t)[0].All() {
		for _, e := range m.Errors {
			sent := &upstream.NodeError{Code: e.Code, Message: e.Message}
			if means := upstream.Meaning(sent); means != expected[e.Message] && !checked[text{e.Code, e.Message}] {
				t.Errorf("%s: %d %s: means %d, expected %d", m.Name, e.Code, e.Message, means, expected[e.Message])
			}
			if got := upstream.IsTooMuch(sent); m.Name == "eth_getLogs" && got != tooMuch[e.Message] {
				t.Errorf("%s: %d %s: too much: %t, expected %t", m.Name, e.Code, e.Message, got, tooMuch[e.Message])
			}
			checked[text{e.Code, e.Message}], seen[e.Message] = true, true
		}
	}
	for message := range expected {
		if !seen[message] {
			t.Errorf("no method is documented to answer %q", message)
		}
	}
}
