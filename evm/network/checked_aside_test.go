package network

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// Filters get new blocks once there is a head, although all nodes are set aside before.
func TestFiltersAfterNodesWereAside(t *testing.T) {
	right, _, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	last := len(right) - 1
	node := startNode(t, genesis, receipts, right[:last])
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, nil)
	opened, err := Family{}.Open(t.Context(), store, &Entries{Upstream: nodesOf(node), Checked: checkState, Quorum: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	methods, err := opened.Serve(t.Context(), family.Service{Name: "checked", Observe: func([]string) jsonrpc.Observer { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t, opened, methods, methods.Handlers()}
	// The nodes that name the head are not asked yet. Others, which are set aside, are in their place.
	c := opened.(*network).checked
	naming := c.nodes
	if c.nodes, err = upstream.New(upstream.Config{Nodes: nodesOf(node), ChainID: genesis.Config.ChainID.Uint64(), Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	c.nodes.SetAside(c.nodes.Status()[0].Name, upstream.ErrLie)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	run := func(what func(context.Context) error) {
		running.Go(func() {
			if err := what(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	run(opened.Run)
	var filter string
	if _, err := s.try(&filter, "eth_newBlockFilter", "[]"); err == nil || !strings.Contains(err.Error(), "set aside") {
		t.Fatalf("before the first head: %v", err)
	}
	run(naming.Run)
	s.await(right[last-1])
	s.call(&filter, "eth_newBlockFilter", "[]")
	node.Set(right, 0, 0)
	s.await(right[last])
	var changes []common.Hash
	for end := time.Now().Add(await.Patience); len(changes) == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.call(&changes, "eth_getFilterChanges", fmt.Sprintf("[%q]", filter))
	}
	if want := []common.Hash{right[last].Hash()}; !slices.Equal(changes, want) {
		t.Errorf("the new blocks are %v, want %v", changes, want)
	}
}
