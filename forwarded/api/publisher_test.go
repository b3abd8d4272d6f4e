package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// nodes is a chain whose head a test moves.
type nodes struct {
	present *forwarded.View
	taken   func()            // called after Present has taken the head, once
	fetched func(block byte)  // called before Logs returns, once
	gone    map[byte]struct{} // blocks without logs
}

func (n *nodes) View(context.Context) (*forwarded.View, error) { return n.Present(), nil }

func (n *nodes) Present() *forwarded.View {
	view := n.present
	if taken := n.taken; taken != nil {
		n.taken = nil
		taken()
	}
	return view
}

// Logs says that each block has one log.
func (n *nodes) Logs(_ context.Context, _ *forwarded.View, f *query.Filter, _ int, found func(*query.Log) error) error {
	block := f.Hash[0]
	if fetched := n.fetched; fetched != nil {
		n.fetched = nil
		fetched(block)
	}
	if _, is := n.gone[block]; is {
		return errors.New("no node has the block")
	}
	return found(&query.Log{BlockHash: *f.Hash, JSON: fmt.Appendf(nil, `{"blockHash":%q}`, f.Hash.Hex())})
}

// chainOf returns a chain of the block 9 and a block for each letter.
func chainOf(letters string) *forwarded.View {
	first := common.Hash{'9'}
	blocks := []*forwarded.Block{{Ref: chain.Ref{Number: 9, Hash: first}, JSON: fmt.Appendf(nil, `{"hash":%q}`, first.Hex())}}
	for _, letter := range []byte(letters) {
		last := blocks[len(blocks)-1]
		hash := common.Hash{letter}
		blocks = append(blocks, &forwarded.Block{
			Ref: chain.Ref{Number: last.Number + 1, Hash: hash}, Parent: last.Hash, JSON: fmt.Appendf(nil, `{"hash":%q}`, hash.Hex()),
		})
	}
	return forwarded.NewView(blocks, 0, 0)
}

// connection is a client's connection. It records its notifications.
type connection struct {
	ctx     context.Context
	running sync.WaitGroup
	results []json.RawMessage // once it has ended
	sent    func()            // called with each notification, if not nil
}

func (c *connection) Start(stream jsonrpc.Stream) (string, error) {
	c.running.Go(func() {
		_ = stream(c.ctx, "0x1", func(parts ...[]byte) error {
			c.results = append(c.results, parts[1])
			if c.sent != nil {
				c.sent()
			}
			return nil
		})
	})
	return "0x1", nil
}

func (c *connection) StartSteps(jsonrpc.Step) (string, error) { return "", errors.ErrUnsupported }
func (c *connection) Stop(string) bool                        { return false }

// clients are one of each kind that begin at the same moment.
type clients struct {
	t           *testing.T
	p           *publisher
	heads, logs connection
	end         context.CancelFunc
	filters     [2]string // for blocks and for logs
}

func (c *clients) join() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	c.heads.ctx, c.logs.ctx, c.end = ctx, ctx, cancel
	blocks, err := c.p.newBlockFilter(ctx, []byte(`[]`), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	logs, err := c.p.newLogFilter(ctx, []byte(`[{}]`), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.filters = [2]string{string(blocks), string(logs)}
	for _, one := range []struct {
		connection *connection
		params     string
	}{{&c.heads, `["newHeads"]`}, {&c.logs, `["logs",{}]`}} {
		if _, err := c.p.subscribeMethod(jsonrpc.WithNotifier(ctx, one.connection), []byte(one.params), nil); err != nil {
			c.t.Fatal(err)
		}
	}
}

// expect ends the subscriptions, and compares what clients got: "x" for a head or a log, "-x" for a
// removed log.
func (c *clients) expect(heads, logs string) {
	c.t.Helper()
	c.end()
	c.heads.running.Wait()
	c.logs.running.Wait()
	for i, want := range []string{heads, logs} {
		if got := c.poll(c.filters[i]); got != want {
			c.t.Errorf("the filter %d got %q, expected %q", i, got, want)
		}
	}
	if got := c.describe(c.heads.results); got != heads {
		c.t.Errorf("the subscription to heads got %q, expected %q", got, heads)
	}
	if got := c.describe(c.logs.results); got != logs {
		c.t.Errorf("the subscription to logs got %q, expected %q", got, logs)
	}
}

// changes answers eth_getFilterChanges.
func (p *publisher) changes(ctx context.Context, params string) ([]byte, error) {
	return p.polled.Changes(p.appendUpdates)(ctx, []byte(params), nil)
}

// poll returns what a filter got.
func (c *clients) poll(id string) string {
	c.t.Helper()
	polled, err := c.p.changes(c.t.Context(), "["+id+"]")
	if err != nil {
		c.t.Error(err)
		return ""
	}
	var list []json.RawMessage
	if err := json.Unmarshal(polled, &list); err != nil {
		c.t.Fatal(err)
	}
	return c.describe(list)
}

func (c *clients) describe(results []json.RawMessage) string {
	c.t.Helper()
	var all []string
	for _, result := range results {
		var one struct {
			Hash, BlockHash common.Hash
			Removed         bool
		}
		if result[0] == '"' {
			result = fmt.Appendf(nil, `{"hash":%s}`, result)
		}
		if err := json.Unmarshal(result, &one); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, strings.Repeat("-", map[bool]int{true: 1}[one.Removed])+string(rune(max(one.Hash[0], one.BlockHash[0]))))
	}
	return strings.Join(all, " ")
}

// newClients returns a publisher that has published a chain, to clients that do not matter.
func newClients(t *testing.T, published string) (*nodes, *clients) {
	t.Helper()
	n := &nodes{present: chainOf(published), gone: make(map[byte]struct{})}
	p := newPublisher(n, Config{})
	others := &clients{t: t, p: p}
	others.join()
	t.Cleanup(func() {
		others.end()
		others.heads.running.Wait()
		others.logs.running.Wait()
	})
	if !p.publish(t.Context()) {
		t.Fatal("the first head is not published")
	}
	return n, &clients{t: t, p: p}
}

// Nobody joins between the moment when a round takes the head and its beginning: a client that knew a
// newer head would get it again in the next round.
func TestNobodyJoinsBeforeARound(t *testing.T) {
	n, c := newClients(t, "")
	n.present = chainOf("x")
	joined := false
	n.taken = func() {
		n.present = chainOf("xy")
		if joined = c.p.mu.TryLock(); joined {
			c.p.mu.Unlock()
			c.join()
		}
	}
	c.p.publish(t.Context())
	if !joined {
		c.join()
	}
	c.p.publish(t.Context())
	n.present = chainOf("xyz")
	c.p.publish(t.Context())
	c.expect("z", "z")
}

// A client that joins while a move is published gets the updates from the head at that moment to each
// later one, and nothing else, however the head moves meanwhile.
func TestJoinWhileTheHeadMoves(t *testing.T) {
	for name, test := range map[string]struct {
		from, to    string   // the move that is being published
		joins       string   // the chain when the client joins, while logs are fetched
		then        []string // the heads of the rounds after that
		heads, logs string
	}{
		"stays":                   {"", "x", "x", []string{"xz"}, "z", "z"},
		"goes on":                 {"", "x", "xy", []string{"xy", "xyz"}, "z", "z"},
		"goes on further":         {"", "x", "xy", []string{"xyz"}, "z", "z"},
		"leaves":                  {"", "x", "y", []string{"y", "yz"}, "z", "z"},
		"leaves further":          {"", "x", "y", []string{"yz"}, "z", "z"},
		"leaves for a third":      {"", "x", "y", []string{"z"}, "z", "-y z"},
		"leaves and returns":      {"", "x", "y", []string{"x", "xz"}, "x z", "-y x z"},
		"returns":                 {"x", "y", "x", []string{"x", "xz"}, "z", "z"},
		"returns and leaves":      {"x", "y", "x", []string{"y", "yz"}, "y z", "-x y z"},
		"returns and leaves late": {"x", "y", "x", []string{"x", "y"}, "y", "-x y"},
		"goes back":               {"", "xy", "", []string{"", "z"}, "z", "z"},
		"follows":                 {"x", "y", "y", []string{"y", "yz"}, "z", "z"},
		"follows further":         {"x", "y", "yz", []string{"yz", "w"}, "w", "-z -y w"},
		"follows and returns":     {"x", "y", "y", []string{"x", "y", "xz"}, "x y x z", "-y x -x y -y x z"},
	} {
		t.Run(name, func(t *testing.T) {
			n, c := newClients(t, test.from)
			n.present = chainOf(test.to)
			n.fetched = func(byte) {
				n.present = chainOf(test.joins)
				c.join()
			}
			c.p.publish(t.Context())
			for _, head := range test.then {
				n.present = chainOf(head)
				if !c.p.publish(t.Context()) {
					t.Fatalf("the head %s is not published", head)
				}
			}
			c.expect(test.heads, test.logs)
		})
	}
}

// TestJoinAnytime compares what clients get that join at random moments, while the head moves at random,
// with the updates from each head to the next one that is published.
func TestJoinAnytime(t *testing.T) {
	heads := []string{"", "x", "xy", "xyz", "xw", "v", "vu"}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		move := func() string { return heads[random.IntN(len(heads))] }
		n, c := newClients(t, "")
		var all []*joined
		join := func(at string) {
			one := &joined{clients: &clients{t: t, p: c.p}, at: at}
			one.join()
			all = append(all, one)
		}
		for range 10 {
			to, next := move(), move()
			n.present = chainOf(to)
			if random.IntN(3) == 0 {
				join(to)
			}
			before := len(all)
			n.fetched = func(byte) {
				n.present = chainOf(next)
				join(next)
			}
			if !c.p.publish(t.Context()) {
				t.Fatal("a head is not published")
			}
			n.fetched = nil
			for _, one := range all[:before] {
				one.move(to)
			}
		}
		for _, one := range all {
			one.expect(strings.Join(one.wantHeads, " "), strings.Join(one.wantLogs, " "))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// joined are clients with what they must get.
type joined struct {
	*clients
	at                  string
	wantHeads, wantLogs []string
}

// move adds the updates from the last head to another to what the clients must get.
func (j *joined) move(to string) {
	dropped, added, _ := forwarded.Changes(chainOf(j.at), chainOf(to))
	for _, b := range dropped {
		j.wantLogs = append(j.wantLogs, "-"+string(rune(b.Hash[0])))
	}
	for _, b := range added {
		name := string(rune(b.Hash[0]))
		j.wantHeads, j.wantLogs = append(j.wantHeads, name), append(j.wantLogs, name)
	}
	if len(dropped) > 0 && len(added) == 0 { // the head, and not its logs, once more
		j.wantHeads = append(j.wantHeads, string(rune(chainOf(to).Head().Hash[0])))
	}
	j.at = to
}

// If no node has the logs of a block that only a client that joins may know, they are left out.
func TestJoinAtABlockThatIsForgotten(t *testing.T) {
	n, c := newClients(t, "")
	n.present, n.gone['y'] = chainOf("x"), struct{}{}
	n.fetched = func(byte) {
		n.present = chainOf("y")
		c.join()
	}
	c.p.publish(t.Context())
	n.present = chainOf("z")
	c.p.publish(t.Context())
	c.expect("z", "z")
}

// A client that joins before or after a head that is gone before its logs are known begins there all
// the same: it gets the updates to the head of the next round.
func TestJoinAtAHeadThatIsNotPublished(t *testing.T) {
	for _, during := range []bool{true, false} {
		n, c := newClients(t, "")
		n.present, n.gone['x'] = chainOf("x"), struct{}{}
		if during {
			n.fetched = func(byte) { c.join() }
		}
		if c.p.publish(t.Context()) {
			t.Error("a head whose logs no node has is published")
		}
		if !during {
			c.join()
		}
		for _, head := range []string{"y", "yz"} {
			n.present = chainOf(head)
			c.p.publish(t.Context())
		}
		c.expect("y z", "y z")
	}
}
