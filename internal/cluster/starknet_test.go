package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/internal/node"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"
	"ashlar/starknet/source/synthetic"
)

// unruled returns further blocks of a chain, of a version for whose hash there is no rule.
func unruled(chain *synthetic.Chain, n int) (blocks []*starknet.Block) {
	for range n {
		block := chain.Next()
		block.Version = "99.0"
		blocks = append(blocks, block)
	}
	return blocks
}

// TestStarknet has a writer follow a Starknet node over a reorganization, and a reader show
// the same. The reader serves a second network, which is created later.
func TestStarknet(t *testing.T) {
	made := synthetic.New(synthetic.Default())
	past := unruled(made, 90)
	fork := made.Fork(7)
	first, second := append(past[:90:90], unruled(made, 10)...), append(past[:90:90], unruled(fork, 15)...)
	source := nodetest.New(t, 8, first)
	source.ChainID = starknet.FeltOfText("SN_MINE")
	follow := func(name string) string {
		return fmt.Sprintf("networks: {%s: {family: starknet, chain: SN_MINE, source: %q}}", name, source.URL)
	}
	keyspace := newKeyspace(t)
	_, writer := serve(t, process(t, keyspace, "writer", follow(network)))
	shown := func(c *node.Client, blocks []*starknet.Block) func() bool {
		last := blocks[len(blocks)-1]
		return func() bool {
			var head struct {
				Number uint64 `json:"block_number"`
				Hash   string `json:"block_hash"`
			}
			err := c.Call(t.Context(), &head, "starknet_blockHashAndNumber")
			return err == nil && head.Number == last.Number && head.Hash == last.Hash.String()
		}
	}
	within(t, "the writer shows the head", shown(writer, first))
	_, reader := serve(t, process(t, keyspace, "reader"))
	for _, blocks := range [][]*starknet.Block{first, second} {
		source.Set(blocks)
		within(t, "the writer shows the head", shown(writer, blocks))
		within(t, "the reader shows the head", shown(reader, blocks))
		filter := map[string]any{"filter": map[string]any{"chunk_size": 1000, "from_block": map[string]any{"block_number": 60}}}
		var pages [2]json.RawMessage
		for i, c := range []*node.Client{writer, reader} {
			if err := patiently(t, c, &pages[i], "starknet_getEvents", filter["filter"]); err != nil {
				t.Fatal(err)
			}
		}
		if string(pages[0]) != string(pages[1]) || len(pages[0]) < 1000 {
			t.Errorf("the reader's page of events has %d bytes, the writer's %d", len(pages[1]), len(pages[0]))
		}
	}
	serve(t, process(t, keyspace, "writer", follow("later")))
	later := node.NewClient(strings.Replace(reader.URL, "/v3/", "/later/v3/", 1))
	within(t, "the reader serves a network created later", shown(later, second))
}
