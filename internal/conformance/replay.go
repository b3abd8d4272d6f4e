package conformance

import (
	"bytes"
	"testing"

	"ashlar/internal/node"
)

// Replay sends the requests of a conversation and compares the answers with the recorded ones.
func Replay(t *testing.T, client *node.Client, c Conversation) {
	for _, e := range c.Exchanges {
		got := post(t, client, e.Request)
		wrong, worded := c.compare(e.Answer, got)
		for _, w := range wrong {
			t.Error(w)
		}
		for _, m := range worded {
			t.Log("worded otherwise: " + m)
		}
		if t.Failed() {
			t.Logf("request: %.1000s", e.Request)
		}
	}
}

// post returns the answer to a request. It asks again if a call took too long, as on a busy
// machine; the recorded calls do not.
func post(t *testing.T, client *node.Client, request []byte) (answer []byte) {
	for range 3 {
		var err error
		if _, answer, err = client.Post(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(answer, []byte(`"execution aborted (timeout`)) {
			break
		}
		t.Logf("%.1000s: %s", request, answer)
	}
	return answer
}
