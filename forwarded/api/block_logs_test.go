package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/feed"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// largeLogs is a chain whose blocks have logs of one kilobyte, but for one with larger ones.
type largeLogs struct {
	*nodes
	larger byte
	asked  map[byte]int
}

func (n *largeLogs) Logs(_ context.Context, _ *forwarded.View, f *query.Filter, _ int, found func(*query.Log) error) error {
	block, bytes := f.Hash[0], 1024
	if block == n.larger {
		bytes = 1 << 20
	}
	n.asked[block]++
	if _, is := n.gone[block]; is {
		return errors.New("no node has the block")
	}
	return found(&query.Log{BlockHash: *f.Hash, JSON: fmt.Appendf(nil, `{"blockHash":%q,"data":"0x%s"}`, f.Hash.Hex(), strings.Repeat("0", bytes))})
}

// The logs that are kept for the removal of blocks are bounded in bytes, not only in blocks: the oldest are forgotten, are not
// asked for at each head, and are asked for again when their block is removed.
func TestKeptLogsAreBounded(t *testing.T) {
	const letters = "abcdefghijklmnopqrst"
	n := &largeLogs{&nodes{present: chainOf(""), gone: make(map[byte]struct{})}, 'e', make(map[byte]int)}
	limits := feed.Limits{Bytes: 8 << 10}
	p := newPublisher(n, Config{Filters: limits})
	c := &clients{t: t, p: p}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.logs.ctx = ctx
	if _, err := p.subscribeMethod(jsonrpc.WithNotifier(ctx, &c.logs), []byte(`["logs",{}]`), nil); err != nil {
		t.Fatal(err)
	}
	move := func(letters string) {
		t.Helper()
		n.present = chainOf(letters)
		if !p.publish(ctx) {
			t.Fatalf("the head of %q is not published", letters)
		}
		p.remember(ctx)
		sum := 0
		for _, logs := range p.logs.byBlock {
			sum += updateBytes + logsBytes(logs)
		}
		if sum != p.logs.bytes || sum > limits.Bytes && len(p.logs.byBlock) != 1 {
			t.Errorf("at the head of %q %d bytes of logs are kept, counted as %d, of %d blocks", letters, sum, p.logs.bytes, len(p.logs.byBlock))
		}
		head := n.present.Head().Hash
		if !p.logs.has(head) {
			t.Errorf("at the head of %q its own logs are not kept", letters)
		}
	}
	for i := range letters {
		move(letters[:i+1])
	}
	for i := range letters {
		if asked := n.asked[letters[i]]; asked != 1 {
			t.Errorf("asked %d times for the logs of %c, expected once", asked, letters[i])
		}
	}
	move("abcdz")
	cancel()
	c.logs.running.Wait()
	want := strings.Join(strings.Split(letters, ""), " ")
	for i := len(letters) - 1; i >= 4; i-- {
		want += " -" + letters[i:i+1]
	}
	if got := c.describe(c.logs.results); got != want+" z" {
		t.Errorf("the subscription got %q, expected %q", got, want+" z")
	}
	if asked := n.asked['e']; asked != 2 {
		t.Errorf("asked %d times for the logs of e, expected twice", asked)
	}
	if p.logs.has(common.Hash{'e'}) {
		t.Error("the logs of a removed block are kept")
	}
}

// If the blocks of one move of the head have too many logs, clients that watch logs are dropped, and the others get the heads.
func TestLogsOfAMoveAreBounded(t *testing.T) {
	n := &largeLogs{&nodes{present: chainOf(""), gone: make(map[byte]struct{})}, 'b', make(map[byte]int)}
	c := &clients{t: t, p: newPublisher(n, Config{Filters: feed.Limits{Bytes: 128 << 10}})}
	c.join()
	n.present = chainOf("abcd")
	if !c.p.publish(t.Context()) {
		t.Fatal("the head is not published at once")
	}
	if n.asked['c']+n.asked['d'] != 0 {
		t.Errorf("asked for more logs than may be held: %v", n.asked)
	}
	c.expectLogsLost("a b c d")
}

// While a move of the head cannot be published, the logs of its blocks that are known are not asked for again, however small the
// memory for them. Those of blocks that have left the chain meanwhile are forgotten.
func TestLogsOfAMoveThatWaitsAreKept(t *testing.T) {
	n := &largeLogs{&nodes{present: chainOf(""), gone: make(map[byte]struct{})}, 0, make(map[byte]int)}
	p := newPublisher(n, Config{Filters: feed.Limits{Bytes: 2 << 10}})
	c := &clients{t: t, p: p}
	c.join()
	defer c.end()
	for _, move := range []struct{ letters, kept string }{{"abcd", "abc"}, {"abcd", "abc"}, {"abxd", "abx"}} {
		n.present, n.gone['d'] = chainOf(move.letters), struct{}{}
		if p.publish(t.Context()) {
			t.Fatal("a head whose logs no node has is published at once")
		}
		p.remember(t.Context())
		for _, letter := range []byte("abcx") {
			if kept := p.logs.has(common.Hash{letter}); kept != strings.Contains(move.kept, string(letter)) {
				t.Errorf("at the head of %q the logs of %c are kept: %v", move.letters, letter, kept)
			}
		}
	}
	for _, letter := range []byte("abcx") {
		if asked := n.asked[letter]; asked != 1 {
			t.Errorf("asked %d times for the logs of %c, expected once", asked, letter)
		}
	}
}
