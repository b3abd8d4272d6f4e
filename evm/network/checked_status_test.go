package network

import (
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/await"
)

// status waits for a status of the network.
func (s *served) status(what string, is func(family.Status) bool) {
	s.t.Helper()
	var status family.Status
	await.Until(s.t, what, func() (holds bool) {
		var err error
		if status, err = s.network.Status(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		return is(status)
	})
}

// The best head of nodes of which a quorum must agree is what a quorum has reached, so one of them alone cannot
// make the network look far behind.
func TestCheckedIsNotBehindOneNode(t *testing.T) {
	right, _, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	const agreed = 4
	a, b, alone := startNode(t, genesis, receipts, right[:agreed+1]), startNode(t, genesis, receipts, right[:agreed+1]), startNode(t, genesis, receipts, right)
	s := serveChecked(t, genesis, nil, &Entries{Upstream: nodesOf(a, b, alone), Quorum: 2})
	s.await(right[agreed])
	s.status("all nodes", func(status family.Status) bool {
		for _, n := range status.Source.Upstreams {
			if !n.Used {
				return false
			}
		}
		return true
	})
	s.status("the head of two nodes", func(status family.Status) bool {
		source := status.Source
		if source.Upstreams[2].Head != uint64(len(right)-1) {
			t.Fatalf("the third node has the head %d", source.Upstreams[2].Head)
		}
		return source.Best == agreed && source.Behind == 0 && source.Reached
	})
}
