package conformance

import (
	"testing"

	"ashlar/internal/node"
)

// Replay sends the requests of a conversation and compares the answers with the recorded ones.
func Replay(t *testing.T, client *node.Client, c Conversation) {
	for _, e := range c.Exchanges {
		_, got, err := client.Post(t.Context(), e.Request)
		if err != nil {
			t.Fatal(err)
		}
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
