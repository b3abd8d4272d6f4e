package api

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/feed"
	"ashlar/forwarded"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
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

// A filter that was uninstalled or has expired before a round no longer joins, and its view is not kept.
func TestFiltersThatAreGoneDoNotJoin(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := &nodes{present: chainOf("")}
	p := newPublisher(n, Config{Now: func() time.Time { return now }})
	install := func() (id string) {
		t.Helper()
		added, err := p.newBlockFilter(t.Context(), []byte(`[]`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(added)
	}
	expectJoining := func(want int) {
		t.Helper()
		r := p.startRound()
		if len(r.joining) != want {
			t.Errorf("clients join from %d views, expected %d", len(r.joining), want)
		}
		if !p.postpone(context.Canceled, r) {
			t.Error("the round is not postponed")
		}
	}
	install()
	n.present = chainOf("x")
	id := install()
	expectJoining(1)
	if out, err := p.polled.Uninstall(t.Context(), []byte("["+id+"]"), nil); string(out) != "true" || err != nil {
		t.Errorf("uninstalling returned %s, %v", out, err)
	}
	expectJoining(0)
	install()
	expectJoining(1)
	now = now.Add(feed.DefaultFilterUnread)
	expectJoining(0)
}

// After a failed round, filters that would have joined are gone, and later rounds do not fail for their views.
func TestFiltersThatJoinAreDroppedWithAFailedRound(t *testing.T) {
	n, c := newClients(t, "")
	unrelated := forwarded.NewView([]*forwarded.Block{{Ref: chain.Ref{Number: 9, Hash: common.Hash{'8'}}, JSON: []byte("{}")}}, 0, 0)
	n.present = unrelated
	var filter []byte
	for range 2 {
		var err error
		if filter, err = c.p.newBlockFilter(t.Context(), []byte(`[]`), nil); err != nil {
			t.Fatal(err)
		}
	}
	n.present = chainOf("x")
	if !c.p.publish(t.Context()) {
		t.Error("a round without a common block is postponed")
	}
	if out, err := c.p.changes(t.Context(), "["+string(filter)+"]"); !errors.Is(err, feed.ErrFilterNotFound) {
		t.Errorf("the filter of an unrelated chain returned %s, %v", out, err)
	}
	c.join()
	n.present = chainOf("xy")
	c.p.publish(t.Context())
	c.expect("y", "y")
}

// The updates that filters get when they join are bounded like those for all filters: a filter that does
// not return them in time falls behind.
func TestUpdatesOfFiltersThatJoinAreBounded(t *testing.T) {
	n := &nodes{present: chainOf("abcdef")}
	p := newPublisher(n, Config{Filters: feed.Limits{Bytes: 50 * filterBytes}})
	c := &clients{t: t, p: p}
	install := func() (id string) {
		t.Helper()
		added, err := p.newLogFilter(t.Context(), []byte(`[{}]`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(added)
	}
	install() // reads nothing
	var joined []string
	for range 10 {
		for range 2 {
			n.present = chainOf("")
			joined = append(joined, install())
		}
		n.present = chainOf("abcdef")
		if !p.publish(t.Context()) {
			t.Fatal("the round is not published")
		}
	}
	for _, id := range joined[len(joined)-2*5:] { // 5 rounds fit if both filters share the updates
		if got := c.poll(id); got != "a b c d e f" {
			t.Errorf("a filter of the last rounds got %q", got)
		}
	}
	if out, err := p.changes(t.Context(), "["+joined[0]+"]"); !errors.Is(err, feed.ErrFilterNotFound) {
		t.Errorf("a filter of the first round returned %s, %v", out, err)
	}
}

// shortAnswers is a [jsonrpc.Holder] of answers of up to so many bytes.
type shortAnswers int

func (s shortAnswers) Hold(length int) error {
	if length > int(s) {
		return errors.New("no memory")
	}
	return nil
}

func (s shortAnswers) Reserve(int) bool { return true }
func (s shortAnswers) Drop([]byte)      {}

// A filter that joins returns each of its updates once, however many fit into an answer.
func TestFilterThatJoinsReturnsUpdatesInParts(t *testing.T) {
	n, c := newClients(t, "ab")
	n.present = chainOf("")
	added, err := c.p.newBlockFilter(t.Context(), []byte(`[]`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, head := range []string{"ab", "abc"} {
		n.present = chainOf(head)
		c.p.publish(t.Context())
	}
	ctx := context.WithValue(t.Context(), jsonrpc.HolderKey{}, jsonrpc.Holder(shortAnswers(100)))
	for _, want := range []string{"a", "b", "c", ""} {
		var hashes []common.Hash
		out, err := c.p.changes(ctx, "["+string(added)+"]")
		if err == nil {
			err = json.Unmarshal(out, &hashes)
		}
		var got string
		for _, hash := range hashes {
			got += string(rune(hash[0]))
		}
		if got != want || err != nil {
			t.Errorf("a poll returned %q, %v; expected %q", got, err, want)
		}
	}
}
