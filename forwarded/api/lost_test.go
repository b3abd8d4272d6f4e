package api

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ashlar/feed"
)

// expectLogsLost ends the subscription to heads, and checks that clients watched these heads and that
// those that watch logs were dropped.
func (c *clients) expectLogsLost(heads string) {
	c.t.Helper()
	c.logs.running.Wait() // ends by itself
	c.end()
	c.heads.running.Wait()
	if got := c.describe(c.heads.results); got != heads {
		c.t.Errorf("the subscription to heads got %q, expected %q", got, heads)
	}
	if got := c.poll(c.filters[0]); got != heads {
		c.t.Errorf("the filter for blocks got %q, expected %q", got, heads)
	}
	if out, err := c.p.changes(c.t.Context(), "["+c.filters[1]+"]"); !errors.Is(err, feed.ErrFilterNotFound) {
		c.t.Errorf("the filter for logs returned %s, %v", out, err)
	}
}

// Clients that watch heads do not need the logs of a dropped block that no node has any more.
func TestLogsOfADroppedBlockAreLost(t *testing.T) {
	n, c := newClients(t, "x")
	var out bytes.Buffer
	c.p.log = slog.New(slog.NewTextHandler(&out, nil)).With("network", "base")
	c.join()
	n.present, n.gone['x'] = chainOf("y"), struct{}{}
	later := &clients{t: t, p: c.p}
	later.join() // knows y, and is to be notified of nothing before
	for _, head := range []string{"y", "yz"} {
		n.present = chainOf(head)
		if !c.p.publish(t.Context()) {
			t.Fatalf("the head %s is not published", head)
		}
	}
	c.expectLogsLost("y z")
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "network=base") {
		t.Errorf("the log has %q, expected one line with the network", text)
	}
	later.expect("z", "z")
}

// Clients that watch heads do not wait for ever for the logs of a new block, and those that join after
// the round has begun have another chance.
func TestLogsOfANewBlockAreLost(t *testing.T) {
	n, c := newClients(t, "")
	c.join()
	n.present, n.gone['x'] = chainOf("x"), struct{}{}
	joining := &clients{t: t, p: c.p}
	if c.p.publish(t.Context()) {
		t.Fatal("a head whose logs no node has is published at once")
	}
	c.p.stuck = time.Now().Add(-2 * patience)
	n.fetched = func(byte) { joining.join() }
	for _, head := range []string{"x", "xy"} {
		n.present = chainOf(head)
		if !c.p.publish(t.Context()) {
			t.Fatalf("the head %s is not published", head)
		}
	}
	c.expectLogsLost("x y")
	joining.expect("y", "y")
}

// A filter for blocks alone needs no logs.
func TestBlockFiltersNeedNoLogs(t *testing.T) {
	n := &nodes{present: chainOf(""), gone: map[byte]struct{}{'x': {}}}
	c := &clients{t: t, p: newPublisher(n, Config{})}
	id, err := c.p.newBlockFilter(t.Context(), []byte(`[]`), nil)
	if err != nil {
		t.Fatal(err)
	}
	n.present = chainOf("x")
	if !c.p.publish(t.Context()) {
		t.Error("the head is not published")
	}
	if got := c.poll(string(id)); got != "x" {
		t.Errorf("the filter got %q, expected %q", got, "x")
	}
}
