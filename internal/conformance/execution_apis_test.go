package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// TestExecutionAPIs replays every conversation of ethereum/execution-apis on the chain with which it was
// recorded. ASHLAR_CONFORMANCE_URL names another server to test, in order to check the test itself.
func TestExecutionAPIs(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	conversations, err := ReadConversations(folder)
	if err != nil {
		t.Fatal(err)
	}
	later := laterTable()
	for _, l := range later {
		if !slices.ContainsFunc(conversations, func(c Conversation) bool { return l.matches(c.Name) }) {
			t.Errorf("the later table names %s, which is not among the conversations", l.Name)
		}
	}
	var client *node.Client
	if url := os.Getenv("ASHLAR_CONFORMANCE_URL"); url != "" {
		client = node.NewClient(url)
	} else {
		s := importChain(t, filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp"))
		client = s.serve(t)
	}
	for _, c := range conversations {
		t.Run(c.Name, func(t *testing.T) {
			if i := slices.IndexFunc(later, func(l Later) bool { return l.matches(c.Name) }); i >= 0 {
				t.Skip("later: " + later[i].Why)
			}
			Replay(t, client, c)
		})
	}
}
