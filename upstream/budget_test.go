package upstream

import (
	"fmt"
	"testing"
	"time"
)

// All calls of a poll count.
func TestPollsAreCounted(t *testing.T) {
	awaitDay(t)
	f := newFake(t, 7, 10)
	p := open(t, Config{Nodes: nodesOf(f)})
	until(t, "the node was polled", func() bool { return f.asked("eth_getBlockByNumber") > 20 })
	usable(t, p, 1)
	sent := 0
	for _, method := range []string{"eth_chainId", "eth_getBlockByNumber", "eth_getBalance"} {
		sent += f.asked(method)
	}
	if today := spentToday(p.nodes[0]); today < uint64(sent) {
		t.Errorf("%d units are spent, %d calls were made", today, sent)
	}
}

// A node without units for the rest of the day is not usable: its head is an old one.
func TestSpentNodeIsNotUsable(t *testing.T) {
	awaitDay(t)
	f := newFake(t, 7, 10)
	p := open(t, Config{Nodes: []Node{{URL: f.URL, Daily: 20}}})
	until(t, "its head is known", func() bool { return p.Status()[0].Head.Number == 10 }) // it is usable for as long as its units last
	f.set(func(f *fake) { f.head = 11 })
	until(t, "its units are used up", func() bool { return p.Status()[0].Why == "its credits are used up" })
	if s := p.Status()[0]; s.Usable || s.Failures != 0 {
		t.Errorf("usable: %t, after %d failures", s.Usable, s.Failures)
	}
}

// The calls of a batch are counted one by one.
func TestBatchesAreCounted(t *testing.T) {
	awaitDay(t)
	small, large := newFake(t, 7, 10), newFake(t, 7, 10)
	p := open(t, Config{Poll: time.Hour, Nodes: []Node{{URL: small.URL, Daily: 25}, {URL: large.URL, Backup: true}}})
	usable(t, p, 2)
	var calls []Call
	for i := range 30 {
		calls = append(calls, Call{Method: "m", Params: fmt.Appendf(nil, "[%d]", i)})
	}
	for i, a := range p.AskAll(t.Context(), calls) {
		if a.Err != nil {
			t.Errorf("answer %d: %v", i, a.Err)
		}
	}
	if today := spentToday(p.nodes[0]); today > 25 || small.asked("m") > 20 {
		t.Errorf("%d of 25 units are spent, with 5 of a poll and %d calls", today, small.asked("m"))
	}
}

// spentToday returns how many units of a node's daily budget are spent.
func spentToday(n *node) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.day.Used(time.Now())
}

// awaitDay waits for the next day (UTC) if this one is about to end: units come back then.
func awaitDay(t *testing.T) {
	t.Helper()
	if left := time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)); left < time.Minute {
		t.Logf("a new day begins in %v", left)
		time.Sleep(left)
	}
}
