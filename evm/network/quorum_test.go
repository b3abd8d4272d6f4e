package network

import (
	"context"
	"strings"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/core/types"
)

// TestQuorum follows three nodes over real connections, of which two must agree. One of
// them has another valid chain, whose blocks it calls final: it is named, and nothing of its
// chain is visible or settles. When a second node goes over to its chain, the head moves.
func TestQuorum(t *testing.T) {
	const shared = 4
	genesis, right := ingesttest.Crossing(t)
	wrong := ingesttest.Diverging(t, shared)
	chainOf := func(blocks []*types.Block) []*types.Block {
		return append([]*types.Block{genesis.ToBlock()}, blocks...)
	}
	var nodes []*fakenode.Node
	entries := &Entries{Quorum: 2}
	for i, chain := range [][]*types.Block{chainOf(wrong), chainOf(right[:len(right)-1]), chainOf(right[:len(right)-1])} {
		node, err := fakenode.New(fakenode.Options{ChainID: genesis.Config.ChainID.Uint64(), Raw: i != 1, Subscriptions: true}, chain[0])
		if err != nil {
			t.Fatal(err)
		}
		defer node.Close()
		last := uint64(len(chain) - 1)
		node.Set(chain, last, map[bool]uint64{true: last, false: 2}[i == 0])
		nodes, entries.Source = append(nodes, node), append(entries.Source, node.SocketURL())
	}
	store := ingesttest.Store(t)
	importBlocks(t, store, genesis, nil)
	n, err := Family{}.Open(t.Context(), store, entries, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Serve(t.Context(), family.Service{Name: "quorum"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	await := func(what string, is func(family.Status) bool) family.Status {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
			status, err := n.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if is(status) {
				return status
			}
			if time.Now().After(end) {
				t.Fatalf("waited in vain for %s: %+v %+v", what, status, status.Source)
			}
		}
	}
	last := len(right) - 1
	status := await("the head of two nodes", func(s family.Status) bool {
		a := s.Source.Agreement
		return s.HeadHash == right[last-1].Hash().Hex() && s.Settled == 2 && s.Source.Upstreams[0].Differs != "" &&
			a != nil && a.Nodes == 2 && a.Since == 0 && s.Source.Behind == 0
	})
	if a := status.Source.Agreement; a.Quorum != 2 {
		t.Errorf("agreement %+v", a)
	}
	if liar := status.Source.Upstreams[0]; liar.Used || !strings.Contains(liar.Why, "2 other nodes have") {
		t.Errorf("the node with another chain: %+v", liar)
	}
	nodes[1].Close()
	status = await("one node too few", func(s family.Status) bool {
		return s.Source.Agreement.Since != 0 && !s.Source.Reached && s.Source.Problem != ""
	})
	if status.HeadHash != right[last-1].Hash().Hex() {
		t.Errorf("without agreement: %+v %+v", status, status.Source)
	}
	nodes[2].Set(chainOf(wrong), 5, 5)
	await("the head of two other nodes", func(s family.Status) bool {
		return s.HeadHash == wrong[last].Hash().Hex() && s.Source.Agreement.Since == 0
	})
	await("final blocks", func(s family.Status) bool { return s.Settled == 5 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
