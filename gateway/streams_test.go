package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// streaming returns a network whose test_subscribe starts a stream of n messages of the
// given size, and whose test_unsubscribe stops it.
func streaming(n, size int, ended chan<- error) gateway.Network {
	made := network("alpha")
	made.Methods = jsonrpctest.With(made.Methods, jsonrpctest.Method("test_subscribe", func(ctx context.Context, _, out []byte) ([]byte, error) {
		notifier, ok := jsonrpc.NotifierFrom(ctx)
		if !ok {
			return out, &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "notifications not supported"}
		}
		padding := bytes.Repeat([]byte(" "), size)
		id, err := notifier.Start(func(ctx context.Context, id string, send jsonrpc.Send) error {
			var err error
			for i := 0; i < n && err == nil; i++ {
				err = send(fmt.Appendf(nil, `{"id":%q,`, id), fmt.Appendf(nil, `"n":%d}`, i), padding)
			}
			if err == nil {
				<-ctx.Done()
			}
			ended <- err
			return nil
		})
		return jsonrpc.AppendString(out, id), err
	}))
	made.Methods = jsonrpctest.With(made.Methods, jsonrpctest.Method("test_unsubscribe", func(ctx context.Context, params, out []byte) ([]byte, error) {
		var args [1][]byte
		if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
			return out, err
		}
		id, _ := jsonrpc.String(args[0])
		notifier, _ := jsonrpc.NotifierFrom(ctx)
		return fmt.Appendf(out, "%t", notifier.Stop(string(id))), nil
	}))
	return made
}

func TestStreams(t *testing.T) {
	ended := make(chan error, 3)
	s := start(t, gateway.Config{Networks: []gateway.Network{streaming(2, 0, ended)}, Sockets: gateway.SocketLimits{Streams: 2}}, 0)
	if _, answer := s.post(call("test_subscribe")); !strings.Contains(answer, "notifications not supported") {
		t.Errorf("over HTTP: %s", answer)
	}
	c, other := s.dial(nil), s.dial(nil)
	subscribe := func() (id string) {
		t.Helper()
		c.send(call("test_subscribe"))
		answer := c.receive() // before the stream's first message
		if _, err := fmt.Sscanf(answer, `{"jsonrpc":"2.0","id":1,"result":%q}`, &id); err != nil || !strings.HasPrefix(id, "0x") {
			t.Fatalf("%v: %s", err, answer)
		}
		for i := range 2 {
			if got, want := c.receive(), fmt.Sprintf(`{"id":%q,"n":%d}`, id, i); got != want {
				t.Fatalf("got %s, expected %s", got, want)
			}
		}
		return id
	}
	unsubscribe := func(c *socket, id, want string) {
		t.Helper()
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"test_unsubscribe","params":[%q]}`, id))
		if got := c.receive(); !strings.Contains(got, want) {
			t.Errorf("got %s, expected %s", got, want)
		}
	}
	first := subscribe()
	subscribe()
	c.send(call("test_subscribe"))
	if got := c.receive(); !strings.Contains(got, `"code":-32005,"message":"too many subscriptions: expected at most 2 on one connection"`) {
		t.Errorf("one too many: %s", got)
	}
	unsubscribe(other, first, "false") // another connection's
	unsubscribe(c, first, "true")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	unsubscribe(c, first, "false")
	subscribe()
	c.conn.CloseNow()
	for range 2 { // the rest ends with the connection
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A client that reads gets all messages that come at once, such as the logs of a large block.
func TestMessagesThatComeAtOnce(t *testing.T) {
	const messages = 10_000
	c := start(t, gateway.Config{Networks: []gateway.Network{streaming(messages, 400, make(chan error, 1))}}, 0).dial(nil)
	c.send(call("test_subscribe"))
	c.receive() // its ID
	for i := range messages {
		if got := c.receive(); !strings.Contains(got, fmt.Sprintf(`"n":%d}`, i)) {
			t.Fatalf("message %d: %s", i, got)
		}
	}
}

// A subscriber that does not read is disconnected, and its queue is bounded.
func TestSlowSubscriberIsClosed(t *testing.T) {
	ended := make(chan error, 1)
	s := start(t, gateway.Config{
		Networks: []gateway.Network{streaming(1e6, 10_000, ended)},
		Sockets:  gateway.SocketLimits{QueueBytes: 1 << 20},
	}, 0)
	slow, other := s.dial(nil), s.dial(nil)
	slow.send(call("test_subscribe"))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "too slowly") {
		t.Errorf("the stream ended with %v", err)
	}
	if other.send(call("test_name")); !strings.Contains(other.receive(), "alpha") {
		t.Error("another connection suffers")
	}
}

// A stream that has lost messages ends its connection with that reason.
func TestStreamThatFallsBehindEndsItsConnection(t *testing.T) {
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_subscribe", func(ctx context.Context, _, out []byte) ([]byte, error) {
		notifier, _ := jsonrpc.NotifierFrom(ctx)
		id, err := notifier.Start(func(context.Context, string, jsonrpc.Send) error { return jsonrpc.ErrSlow })
		return jsonrpc.AppendString(out, id), err
	}))
	c := start(t, gateway.Config{Networks: []gateway.Network{n}}, 0).dial(nil)
	c.send(call("test_subscribe"))
	c.expectClosed(websocket.StatusTryAgainLater, "too slow: messages are not read in time")
}

// drained reads messages until the connection is closed, and returns their number.
func (c *socket) drained(code websocket.StatusCode, reason string) (messages int) {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil {
			var closed websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != code || closed.Reason != reason {
				c.t.Errorf("ended with %v, expected %d %s", err, code, reason)
			}
			return messages
		}
		messages++
	}
}

// A message of a stream costs a credit. Streams end when the day's quota is used up, or
// when they owe more than the rate gives in ten seconds.
func TestStreamsCostCredits(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  account.Rules
		want   uint64 // credits, including the subscription's
		reason string
	}{
		{"a quota", account.Rules{PerDay: 10}, 10, "daily quota exceeded: reached the quota of 10 credits"},
		{"a rate", account.Rules{PerSecond: 10}, 121, "request rate exceeded: the rate limit is 10 credits per second"},
	} {
		p := newPeople(t)
		issued := p.key(account.NewKey{Owner: p.account("a@example.org", account.Limits{}), Rules: c.rules})
		s := start(t, gateway.Config{Networks: []gateway.Network{streaming(1e6, 0, make(chan error, 1))}, Keys: p.keys, Usage: p.usage}, 0)
		client := s.dialWith(issued.APIKey, nil)
		begun := time.Now()
		client.send(call("test_subscribe"))
		got := client.drained(websocket.StatusTryAgainLater, c.reason)
		took := time.Since(begun)
		lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{issued.Key.ID}, By: usage.ByMethod, To: time.Now().Add(time.Hour)})
		if err != nil || len(lines) != 1 || lines[0].Method != "test_subscribe" {
			t.Fatalf("%s: counted %+v, %v", c.name, lines, err)
		}
		// The burst is two seconds of the rate, and more accrues while messages are sent.
		// Messages still queued when the connection ends are lost.
		most := c.want + uint64(took.Seconds()*float64(c.rules.PerSecond)) + 1
		if credits := lines[0].Counts.Credits; credits < c.want || credits > most || got > int(credits) {
			t.Errorf("%s: %d credits for %d messages in %v, expected %d to %d", c.name, credits, got, took, c.want, most)
		}
	}
}

// The memory of streams and of their queued messages is charged.
func TestStreamsHoldMemory(t *testing.T) {
	ended := make(chan error, 2)
	s := start(t, gateway.Config{Networks: []gateway.Network{streaming(1, 0, ended)}, Limits: gateway.Limits{Memory: 20_000}}, 0)
	c := s.dial(nil)
	for range 2 {
		c.send(call("test_subscribe"))
		if got := c.receive(); !strings.Contains(got, "result") {
			t.Fatal(got)
		}
		c.receive()
	}
	held := func(want int64) func() bool { return func() bool { return s.handler.Stats().HeldBytes == want } }
	await.Until(t, "the memory of streams", held(2*4096))
	c.send(call("test_subscribe"))
	if got := c.receive(); !strings.Contains(got, "the server is busy") {
		t.Errorf("more than half of the memory: %s", got)
	}
	c.conn.CloseNow()
	await.Until(t, "the memory of streams", held(0))

	s = start(t, gateway.Config{Networks: []gateway.Network{streaming(1e6, 10_000, ended)}, Limits: gateway.Limits{Memory: 1 << 20}}, 0)
	slow := s.dial(nil)
	slow.send(call("test_subscribe"))
	<-ended // the client does not read
	await.Until(t, "the memory of streams", held(0))
}

// A subscription whose answer is dropped, because it does not fit beside the others of its batch or
// into memory, is ended: the client does not know it.
func TestStreamsEndWithDroppedAnswers(t *testing.T) {
	const step, below = 8, 400 // an ID has more bytes than a step, a batch without its long answer fewer than below
	for _, c := range []struct {
		name   string
		config gateway.Config
		most   int // bytes for the batch
		code   string
	}{
		{"the batch is too long", gateway.Config{RPC: jsonrpc.Config{BatchBytes: 4000}}, 4000, "-32003"},
		{"memory", gateway.Config{Limits: gateway.Limits{Memory: 64 << 10}}, 24 << 10, "-32005"}, // of the half, 4 KiB are the stream's
	} {
		fits, dropped := 0, 0
		for length := c.most - below; dropped < 3; length += step {
			n := streaming(1, 0, make(chan error, 3))
			large(&n, length)
			c.config.Networks, c.config.Sockets.Streams = []gateway.Network{n}, 1
			client := start(t, c.config, 0).dial(nil) // no server has a buffer of another length
			client.send("[" + call("test_huge") + "," + call("test_subscribe") + "]")
			answer := client.receive()
			switch _, rest, _ := strings.Cut(answer, "},"); {
			case strings.Contains(rest, `"result":"0x`):
				fits++
			case strings.Contains(answer, `"result":"xxx`) && strings.Contains(rest, `"error":{"code":`+c.code):
				dropped++
				id := client.subscribed() // finds the only place free
				if got, want := client.receive(), fmt.Sprintf(`{"id":%q,"n":0}`, id); got != want {
					t.Errorf("%s: a message %s, expected %s", c.name, got, want)
				}
			default:
				t.Fatalf("%s: %.100s ... %.200s", c.name, answer, rest)
			}
			client.conn.CloseNow()
		}
		if fits == 0 {
			t.Errorf("%s: nothing fits", c.name)
		}
	}
}
