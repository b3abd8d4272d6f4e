package api

import (
	"context"
	"testing"

	"ashlar/jsonrpc"
)

// If the only client that watches logs leaves while logs are fetched, the round still fetches the logs of
// all its blocks before it publishes any of them.
func TestLastLogSubscriberLeavesDuringARound(t *testing.T) {
	n := &nodes{present: chainOf(""), gone: make(map[byte]struct{})}
	p := newPublisher(n, Config{})
	all := &clients{t: t, p: p}
	subscribe := func(params string) (*connection, context.CancelFunc) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		c := &connection{ctx: ctx}
		if _, err := p.subscribeMethod(jsonrpc.WithNotifier(ctx, c), []byte(params), nil); err != nil {
			t.Fatal(err)
		}
		end := func() {
			cancel()
			c.running.Wait()
		}
		t.Cleanup(end)
		return c, end
	}
	heads, endHeads := subscribe(`["newHeads"]`)
	_, endLogs := subscribe(`["logs",{}]`)
	n.present = chainOf("x")
	joining, endJoining := subscribe(`["newHeads"]`)

	n.present, n.gone['x'] = chainOf("xy"), struct{}{}
	n.fetched = func(block byte) {
		if block != 'y' {
			t.Errorf("the logs of %c are fetched first, expected those of y for the client that joins", block)
		}
		endLogs()
	}
	if p.publish(t.Context()) {
		t.Error("a round is published without the logs of x, which no node has")
	}
	if !p.publish(t.Context()) {
		t.Error("a round that needs no logs is postponed")
	}
	endHeads()
	endJoining()
	if got := all.describe(heads.results); got != "x y" {
		t.Errorf("the subscription got %q, expected %q", got, "x y")
	}
	if got := all.describe(joining.results); got != "y" {
		t.Errorf("the subscription that joined got %q, expected %q", got, "y")
	}
}
