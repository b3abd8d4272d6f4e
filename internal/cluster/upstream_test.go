package cluster

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/core/types"
)

// TestUpstream has a writer and a reader of a network whose answers come from other nodes. The reader asks the nodes
// itself. With check: state it answers what the writer has stored, and the rest is proven.
func TestUpstream(t *testing.T) {
	const stored = 6 // blocks in the keyspace
	genesis, blocks := ingesttest.Crossing(t)
	text, err := json.Marshal(genesis)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	start := writeFile(t, folder, "genesis.json", text)
	whole := local(t)
	importInto(t, whole, start, writeChain(t, folder, "whole.rlp", blocks))
	_, want := serve(t, whole)
	for _, test := range []struct{ name, entries string }{
		{"forwarded", fmt.Sprintf("upstream: %q, poll: 100ms", want.URL)},
		{"proven", fmt.Sprintf("upstream: %q, check: state, genesis: %s", want.URL, start)},
	} {
		t.Run(test.name, func(t *testing.T) {
			keyspace := strings.ReplaceAll(newKeyspace(t), "/", "_")
			networks := fmt.Sprintf("networks: {%s: {%s}}", network, test.entries)
			if test.name == "proven" {
				importInto(t, process(t, keyspace, "writer"), start, writeChain(t, folder, "stored.rlp", blocks[:stored]))
			}
			serve(t, process(t, keyspace, "writer", networks))
			_, reader := serve(t, process(t, keyspace, "reader", networks))
			awaitHead(t, reader, blocks[len(blocks)-1])
			compareReader(t, want, reader, blocks)
			if test.name == "forwarded" {
				refuseWithoutUpstream(t, keyspace)
			}
		})
	}
}

// compareReader compares a reader's answers about all blocks with those of a server that has executed them.
func compareReader(t *testing.T, want, reader *node.Client, blocks []*types.Block) {
	t.Helper()
	wanted, got := askAll(t, want, blocks), askAll(t, reader, blocks)
	for question, answer := range wanted {
		if withoutDifficulty(t, got[question]) != withoutDifficulty(t, answer) {
			t.Errorf("%s: %.300s, expected %.300s", question, got[question], answer)
		}
	}
}

// withoutDifficulty removes the total difficulty of a block, which nodes do not prove.
func withoutDifficulty(t *testing.T, answer json.RawMessage) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	if block, ok := value.(map[string]any); ok {
		delete(block, "totalDifficulty")
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refuseWithoutUpstream starts a reader whose configuration does not name the nodes.
func refuseWithoutUpstream(t *testing.T, keyspace string) {
	t.Helper()
	a := process(t, keyspace, "reader", "listen: "+freeAddress(t))
	p, err := a.ServeBy(t.Context(), filepath.Clean(a.Config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	within(t, "a reader without upstream says what it lacks", func() bool {
		return strings.Contains(p.Output(), "its answers come from other nodes (want upstream)")
	})
}
