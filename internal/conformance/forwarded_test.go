package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// notForwarded returns the conversations that a forwarded network over geth does not repeat, and why.
// checked says that its node is checked by header.
func notForwarded(checked bool) []Later {
	all := []Later{
		{"eth_getBlockByNumber/get-finalized", "geth is driven by no consensus client"},
		{"eth_getBlockByNumber/get-safe", "the same"},
		{"eth_syncing/", "the same"},
		{"eth_capabilities/", "it describes another program"},
		{"testing_buildBlockV1/", "geth does not offer it"},
		{"txpool_content/", "geth's pool has what the other conversations have sent"},
		{"eth_simulateV1/ethSimulate-overflow-nonce-validation", "an internal error of a node is not shown to clients"},
	}
	if checked {
		const uncles = "the blocks have uncles, which cannot be checked by header"
		all = append(all, Later{"eth_getTransactionReceipt/get-blob-tx", "no root covers blobGasPrice"},
			Later{"eth_sendRawTransaction/", "geth has the transactions from the unchecked network"})
		for _, name := range []string{
			"eth_getLogs/contract-addr", "eth_getLogs/filter-with-blockHash", "eth_getLogs/filter-with-blockHash-and-topics",
			"eth_getLogs/topic-exact-match", "eth_getLogs/topic-null-wildcard", "eth_getLogs/topic-wildcard",
			"eth_getTransactionByHash/get-legacy-tx", "eth_getTransactionReceipt/get-legacy-receipt",
		} {
			all = append(all, Later{name, uncles})
		}
	}
	return all
}

// TestExecutionAPIsForwarded replays the conversations of ethereum/execution-apis through a forwarded
// network over geth, unchecked and checked by header.
func TestExecutionAPIsForwarded(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	conversations, err := ReadConversations(folder)
	if err != nil {
		t.Fatal(err)
	}
	geth := gethWithHistory(t, filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp"))
	p, upstream, err := geth.Serve(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	for _, check := range []string{"none", "headers"} {
		t.Run(check, func(t *testing.T) {
			client := serveForwarded(t, upstream.URL, check, conversations)
			skipped := notForwarded(check == "headers")
			for _, c := range conversations {
				t.Run(c.Name, func(t *testing.T) {
					if i := slices.IndexFunc(skipped, func(l Later) bool { return l.matches(c.Name) }); i >= 0 {
						t.Skip(skipped[i].Why)
					}
					Replay(t, client, c)
				})
			}
		})
	}
}

// serveForwarded serves a network whose answers come from a node, with all methods of some conversations.
func serveForwarded(t *testing.T, upstream, check string, conversations []Conversation) *node.Client {
	t.Helper()
	var methods []string
	for _, c := range conversations {
		methods = append(methods, c.Method)
	}
	slices.Sort(methods)
	s := newService(t)
	s.Config = filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  %s:\n    upstream: %s\n    check: %s\n    methods: [%s]\n", s.Network, upstream, check, strings.Join(slices.Compact(methods), ", "))
	if err := os.WriteFile(s.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.serve(t)
}
