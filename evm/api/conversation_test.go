package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ashlar/internal/conformance"
	"ashlar/internal/jsondiff"
	"ashlar/internal/vectors"
)

// TestRecordedConversations replays the conversations of ethereum/execution-apis
// whose methods read the chain; those of calls, logs and proofs have their own tests.
func TestRecordedConversations(t *testing.T) {
	conversations, err := conformance.ReadConversations(vectors.Path(t, "execution-apis"))
	if err != nil {
		t.Fatal(err)
	}
	s := serveVectors(t)
	unanswered := map[string]string{
		"eth_getBlockByNumber/get-finalized": "a file tells nothing about finality",
		"eth_getBlockByNumber/get-safe":      "a file tells nothing about finality",
		"eth_capabilities/get-capabilities":  "the recording node deletes old logs, which an archive does not",
	}
	for _, c := range conversations {
		if !readsChain(c.Method) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if why := unanswered[c.Name]; why != "" {
				t.Skip(why)
			}
			for _, e := range c.Exchanges {
				got := s.Answer(t.Context(), e.Request, nil)
				compare(t, e.Answer, got, c.ShapeOnly)
			}
		})
	}
}

func readsChain(method string) bool {
	for _, prefix := range []string{"debug_getRaw", "eth_get", "eth_chainId", "eth_blockNumber", "eth_syncing", "net_", "eth_baseFee",
		"eth_blobBaseFee", "eth_feeHistory", "eth_config", "eth_capabilities"} {
		if strings.HasPrefix(method, prefix) && method != "eth_getLogs" && method != "eth_getProof" {
			return true
		}
	}
	return false
}

// compare compares an answer with a recorded one. Of an error over parameters
// the text may differ, and blocks have a totalDifficulty that was not recorded.
func compare(t *testing.T, want, got []byte, shapeOnly bool) {
	t.Helper()
	a, err := jsondiff.Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := jsondiff.Decode(got)
	if err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	differ := jsondiff.Values
	if shapeOnly {
		differ = jsondiff.Shapes
	}
	failure, _ := a.(map[string]any)["error"].(map[string]any)
	for _, d := range differ(a, b) {
		switch {
		case d.Path == ".result.totalDifficulty":
		case d.Path == ".error.data" && failure["code"] == json.Number("-32602"): // says what was expected
		case d.Path == ".error.message" && failure["code"] == json.Number("-32602"):
			t.Log("worded otherwise: " + d.String())
		default:
			t.Error(d)
		}
	}
}
