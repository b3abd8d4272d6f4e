package node

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"
)

// The status of a group says which node has no vote: one that is silent, until it answers, and one of another chain.
func TestGroupNamesNodesWithoutVote(t *testing.T) {
	main := makeChain(nil, 0, 12, 1)
	silent, other := nodetest.New(t, 10, main), nodetest.New(t, 10, main)
	other.ChainID = starknet.FeltOf(78)
	var answers atomic.Bool
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	silent.Mischief = func(http.ResponseWriter, nodetest.Question, []byte) bool {
		if !answers.Load() {
			<-end
		}
		return false
	}
	options := optionsFor(silent)
	options.ChainID, options.Poll = silent.ChainID, 50*time.Millisecond
	g, err := NewGroup([]string{silent.URL, nodetest.New(t, 9, main).URL, other.URL, nodetest.New(t, 10, main).URL}, 2, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Follow(ctx, 0, &keptChain{t: t}) }()
	defer func() {
		stop()
		<-ended
	}()
	problem := func(node int, want string) {
		t.Helper()
		await.Until(t, want, func() bool {
			problem := g.Status().Nodes[node].Problem
			return strings.Contains(problem, want) && (problem == "") == (want == "")
		})
	}
	problem(0, errLate.Error())
	problem(2, "another chain: its chain ID is 0x4e, expected 0x4d")
	if s := g.Status(); s.Nodes[0].Failures == 0 || s.Nodes[2].Invalid == 0 {
		t.Errorf("the status is %+v", s)
	}
	await.Until(t, "the agreement of the others", func() bool { return g.Status().Agreement.Nodes == 2 })
	answers.Store(true)
	problem(0, "")
	problem(2, "another chain")
	problem(1, "")
}
