package network

import (
	"fmt"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/common"
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

// A network whose nodes do not agree says since when.
func TestCheckedDisagreement(t *testing.T) {
	right, wrong, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	a, b := startNode(t, genesis, receipts, right), startNode(t, genesis, receipts, right)
	s := serveChecked(t, genesis, nil, &Entries{Upstream: nodesOf(a, b), Quorum: 2})
	s.await(right[len(right)-1])
	s.status("an agreement", func(status family.Status) bool {
		return *status.Source.Agreement == family.AgreementStatus{Quorum: 2, Nodes: 2}
	})
	before := time.Now().Unix()
	a.Set(wrong, 0, 0) // with another block at the end
	s.status("no agreement", func(status family.Status) bool {
		agreement := status.Source.Agreement
		return agreement.Nodes == 0 && agreement.Since >= before && status.Source.Problem != ""
	})
	b.Set(wrong, 0, 0)
	s.status("an agreement again", func(status family.Status) bool {
		return *status.Source.Agreement == family.AgreementStatus{Quorum: 2, Nodes: 2}
	})
}

// A network that executes nothing says that it cannot follow the head of its consensus client while its nodes do not answer.
func TestCheckedCannotFollowConsensus(t *testing.T) {
	right, _, receipts := crossings(t)
	genesis, _ := ingesttest.Crossing(t)
	answering := startNode(t, genesis, receipts, right)
	s := serveChecked(t, genesis, nil, &Entries{Upstream: nodesOf(answering), Quorum: 1, Engine: Engine{Listen: "127.0.0.1:0"}})
	name := func(head int) {
		t.Helper()
		params := fmt.Sprintf(`[{"headBlockHash":%q,"safeBlockHash":%q,"finalizedBlockHash":%q}]`, right[head].Hash(), common.Hash{}, common.Hash{})
		if _, err := s.network.(*network).checked.api.Methods()["engine_forkchoiceUpdatedV3"](t.Context(), []byte(params), nil); err != nil {
			t.Fatal(err)
		}
	}
	name(7)
	s.await(right[7])
	s.status("the head is followed", func(status family.Status) bool { return status.Consensus.Problem == "" })
	answering.Close()
	name(8)
	s.status("the head is not followed", func(status family.Status) bool {
		return status.Head == 7 && status.Consensus.Problem != "" && status.Consensus.Forkchoice != 0
	})
}
