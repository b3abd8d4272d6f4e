package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"ashlar/forwarded/forwardtest"
	"ashlar/jsonrpc"
)

// socket is a connection that records its notifications.
type socket struct {
	mu       sync.Mutex
	messages []string // guarded by mu
	running  sync.WaitGroup
	ctx      context.Context
}

func (s *socket) Start(stream jsonrpc.Stream) (string, error) {
	s.running.Go(func() {
		_ = stream(s.ctx, "0x1", func(parts ...[]byte) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			var text strings.Builder
			for _, part := range parts {
				text.Write(part)
			}
			s.messages = append(s.messages, text.String())
			return nil
		})
	})
	return "0x1", nil
}

func (s *socket) StartSteps(jsonrpc.Step) (string, error) { return "", errors.ErrUnsupported }
func (s *socket) Stop(string) bool                        { return false }

// events returns what the notifications say: "12" for a head, "12/0" for a log, "-12/0" for a
// removed one.
func (s *socket) events(t *testing.T) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, text := range s.messages {
		var m struct {
			Params struct{ Result json.RawMessage }
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, describe(t, m.Params.Result))
	}
	return strings.Join(all, " ")
}

func describe(t *testing.T, result json.RawMessage) string {
	var r struct {
		Number, BlockNumber, LogIndex string
		Removed                       bool
		Transactions                  any
	}
	if err := json.Unmarshal(result, &r); err != nil {
		t.Fatal(err)
	}
	if r.Transactions != nil {
		t.Errorf("a head has transactions: %s", result)
	}
	var number, index uint64
	_, _ = fmt.Sscanf(r.Number+r.BlockNumber, "0x%x", &number)
	if r.LogIndex == "" {
		return fmt.Sprint(number)
	}
	_, _ = fmt.Sscanf(r.LogIndex, "0x%x", &index)
	return strings.Repeat("-", map[bool]int{true: 1}[r.Removed]) + fmt.Sprint(number, "/", index)
}

func (w *world) subscribe(params string) *socket {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	s := &socket{ctx: ctx}
	w.t.Cleanup(func() {
		cancel()
		s.running.Wait()
	})
	if _, err := w.methods.Find("eth_subscribe").Handler(jsonrpc.WithNotifier(ctx, s), []byte(params), nil); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) changes(id string) string {
	w.t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(w.call("eth_getFilterChanges", "["+id+"]")), &list); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, one := range list {
		if one[0] == '"' {
			all = append(all, "block")
		} else {
			all = append(all, describe(w.t, one))
		}
	}
	return strings.Join(all, " ")
}

// Subscribers and filters get every block once, and the logs of dropped blocks as removed,
// even if no node has these blocks any more.
func TestFeed(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 10, LogsPer: 2})
	w := serve(t, newStore(t), nil, n)
	w.atHead(10)
	w.until("its ancestors are known", func() bool { return len(w.network.follower.View().Blocks()) == 11 })
	heads, logs := w.subscribe(`["newHeads"]`), w.subscribe(`["logs",{}]`)
	second := w.subscribe(fmt.Sprintf(`["logs",{"topics":["%#x"]}]`, forwardtest.Topic(1)))
	filter, blocks := w.call("eth_newFilter", `[{}]`), w.call("eth_newBlockFilter", `[]`)
	n.Set(func(n *forwardtest.Node) { n.Chain.Head = 12 })
	w.until("the logs have come", func() bool { return logs.events(t) == "11/0 11/1 12/0 12/1" })
	n.Set(func(n *forwardtest.Node) { n.Chain.Branch, n.Chain.Fork, n.Chain.Head = "b", 12, 13 })
	want := "11/0 11/1 12/0 12/1 -12/1 -12/0 12/0 12/1 13/0 13/1"
	w.until("the reorganization has come", func() bool { return logs.events(t) == want })
	if got := second.events(t); got != "11/1 12/1 -12/1 12/1 13/1" {
		t.Errorf("the subscription to a topic got %s", got)
	}
	if got := heads.events(t); got != "11 12 12 13" {
		t.Errorf("the subscription to heads got %s", got)
	}
	if got := w.changes(filter); got != want {
		t.Errorf("the filter got %s, want %s", got, want)
	}
	if got := w.changes(filter); got != "" {
		t.Errorf("the filter got %s again", got)
	}
	if got := w.changes(blocks); got != "block block block block" {
		t.Errorf("the filter for blocks got %s", got)
	}
	w.expect("eth_getFilterLogs", "["+filter+"]", "…0xd")
	w.expect("eth_uninstallFilter", "["+filter+"]", "true")
	w.expect("eth_uninstallFilter", "["+filter+"]", "false")
	w.expect("eth_getFilterChanges", "["+filter+"]", "-32000 filter not found")
	w.expect("eth_subscribe", `["newHeads"]`, "-32601 notifications not supported")
}

// A blockHash counts in eth_getFilterLogs only, as on networks that execute their blocks, and as in geth.
func TestFilterOfABlock(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 10, LogsPer: 2})
	w := serve(t, newStore(t), nil, n)
	w.atHead(10)
	of := func(block uint64) string { return fmt.Sprintf(`{"blockHash":"%#x"}`, n.Chain.Hash(block)) }
	filter, logs := w.call("eth_newFilter", "["+of(3)+"]"), w.subscribe(`["logs",`+of(3)+`]`)
	w.expect("eth_getFilterLogs", "["+filter+"]", w.call("eth_getLogs", "["+of(3)+"]"))
	n.Set(func(n *forwardtest.Node) { n.Chain.Head = 11 })
	w.until("the logs have come", func() bool { return logs.events(t) == "11/0 11/1" })
	if got := w.changes(filter); got != "11/0 11/1" {
		t.Errorf("the filter got %s", got)
	}
	unknown := w.call("eth_newFilter", fmt.Sprintf(`[{"blockHash":"0x%064x"}]`, 5))
	w.expect("eth_getFilterLogs", "["+unknown+"]", "-32000 unknown block")
}

// A client that subscribes while a move is published gets each block that it did not know
// exactly once, whatever the moment.
func TestSubscribeAnytime(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 10, LogsPer: 1})
	w := serve(t, newStore(t), nil, n)
	w.atHead(10)
	first := w.subscribe(`["newHeads"]`)
	var sockets []*socket
	var from []uint64
	for head := uint64(11); head <= 60; head++ {
		n.Set(func(n *forwardtest.Node) { n.Chain.Head = head })
		if head%3 == 0 {
			w.atHead(head)
		}
		known := w.network.follower.View().Head().Number
		sockets, from = append(sockets, w.subscribe(`["newHeads"]`)), append(from, known)
	}
	w.until("the first subscriber has all heads", func() bool { return strings.HasSuffix(first.events(t), " 60") })
	for i, s := range sockets {
		w.until("a subscriber has the last head", func() bool { return from[i] == 60 || strings.HasSuffix(s.events(t), "60") })
		var heads []string
		for head := from[i] + 1; head <= 60; head++ {
			heads = append(heads, fmt.Sprint(head))
		}
		got := s.events(t)
		if want := strings.Join(heads, " "); got != want && got != strings.TrimPrefix(want, fmt.Sprint(from[i]+1, " ")) { // the head may have moved in between
			t.Errorf("the subscriber at %d got %s", from[i], got)
		}
	}
}

// Pages of events have every log once, whatever their size.
func TestEvents(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 30, LogsPer: 3})
	n.Range = 7
	w := serve(t, newStore(t), nil, n)
	w.atHead(30)
	for _, size := range []int{1, 4, 1000} {
		count, token := 0, ""
		for page := 0; ; page++ {
			var answer struct {
				Events []struct {
					Number uint64 `json:"block_number"`
					Keys   []string
				}
				Token string `json:"continuation_token"`
			}
			text := w.call("rollup_getEvents", fmt.Sprintf(`{"filter":{"from_block":{"block_number":3},"to_block":{"block_hash":"%#x"},"chunk_size":%d,"continuation_token":%s}}`,
				n.Chain.Hash(28), size, map[bool]string{true: "null", false: `"` + token + `"`}[token == ""]))
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(text)
			}
			for _, e := range answer.Events {
				if want := uint64(3 + count/3); e.Number != want || e.Keys[0] != forwardtest.Topic(count%3).Hex() {
					t.Fatalf("event %d is of block %d with the key %s", count, e.Number, e.Keys[0])
				}
				count++
			}
			if token = answer.Token; token == "" {
				break
			}
		}
		if count != 26*3 {
			t.Errorf("pages of %d: %d events, expected %d", size, count, 26*3)
		}
	}
	w.expect("rollup_getEvents", `{"filter":{"from_block":{"block_number":31},"to_block":"latest","chunk_size":5}}`, `{"events":[]}`)
	// A token ends with the event that it names, so that no event is left out.
	const pages = `{"filter":{"from_block":{"block_number":3},"to_block":{"block_number":28},"chunk_size":2%s}}`
	var page struct {
		Token string `json:"continuation_token"`
	}
	if text := w.call("rollup_getEvents", fmt.Sprintf(pages, "")); json.Unmarshal([]byte(text), &page) != nil || page.Token == "" {
		t.Fatal(text)
	}
	second := fmt.Sprintf(pages, `,"continuation_token":"`+page.Token+`"`)
	w.expect("rollup_getEvents", second, `…"events":[{`)
	for i, left := range []int{2, 0} {
		head := uint64(31 + i) // answers are kept as long as the head stays
		n.Set(func(n *forwardtest.Node) { n.Chain.LogsPer, n.Chain.Head = left, head })
		w.atHead(head)
		w.expect("rollup_getEvents", second, "33 The supplied continuation token is invalid or unknown")
	}
	w.expect("rollup_getEvents", fmt.Sprintf(`{"filter":{"from_block":{"block_hash":"0x%064x"},"to_block":"latest","chunk_size":5}}`, 5), "24 Block not found")
}

// A subscription without a known kind, or with other arguments, gets the errors of other networks.
func TestKindsOfSubscriptions(t *testing.T) {
	w := serve(t, newStore(t), nil, node(t, forwardtest.Chain{Head: 3}))
	w.atHead(3)
	for params, want := range map[string]string{
		`[]`:            "-32602 expected subscription name as first argument",
		`[1]`:           "-32602 expected subscription name as first argument",
		`["logs"]`:      "-32602 missing value for required argument 1",
		`["logs",{},1]`: "-32602 too many arguments, want at most 2",
		`["more"]`:      `-32601 no "more" subscription in eth namespace`,
	} {
		_, err := w.methods.Find("eth_subscribe").Handler(jsonrpc.WithNotifier(t.Context(), new(socket)), []byte(params), nil)
		var said *jsonrpc.Error
		if !errors.As(err, &said) || fmt.Sprintf("%d %s", said.Code, said.Message) != want {
			t.Errorf("%s: %v, want %s", params, err, want)
		}
	}
}
