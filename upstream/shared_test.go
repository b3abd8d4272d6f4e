package upstream

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ashlar/internal/raced"
)

// TestNodeIsShared: calls, polls and the status use what is known of a node at the same time.
func TestNodeIsShared(t *testing.T) {
	p := open(t, Config{Nodes: nodesOf(newFake(t, 7, 1)), ChainID: 7})
	mustAsk(t, p, Call{Method: "x"})
	n, now, methods := p.nodes[0], time.Now(), 0
	raced.Together(
		func() { n.polled(time.Millisecond) },
		func() { n.pollFailed(errors.New("no answer"), now) },
		func() { n.turn("x", now) },
		func() { n.cost("x") },
		func() { n.status(7, now) },
		func() { // a method that was not asked before
			methods++
			n.done(t.Context(), &Call{Method: fmt.Sprint(methods)}, time.Millisecond, false, nil)
		},
	)
	identify, probe := func() { _ = n.identify(t.Context()) }, func() { n.probeHashes(t.Context(), Head{}) }
	raced.Together(identify, probe, probe, func() { n.takesBatches([]Call{{Method: "x"}}) })
	raced.Together(func() { n.setAside("x", errors.New("a lie")) }, func() { n.status(7, now) })
	asked := new(askedNodes)
	raced.Together(func() { asked.add("a") }, func() { _ = ended(t.Context(), "x", asked) })
}
