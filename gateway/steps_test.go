package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
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

// stepping returns a network whose test_subscribe starts a stream of steps, and whose
// test_unsubscribe stops it.
func stepping(step jsonrpc.Step) gateway.Network {
	made := streaming(0, 0, nil)
	subscribe := jsonrpctest.Method("test_subscribe", func(ctx context.Context, _, out []byte) ([]byte, error) {
		notifier, _ := jsonrpc.NotifierFrom(ctx)
		id, err := notifier.StartSteps(step)
		return jsonrpc.AppendString(out, id), err
	})
	subscribe.Cost = jsonrpc.Heavy(5)
	made.Methods = jsonrpctest.With(made.Methods, subscribe)
	return made
}

// numbers is a step whose messages are the numbers up to n, and a blank step after each.
func numbers(n int) jsonrpc.Step {
	next := 0
	return func(_ context.Context, _ string, out []byte) ([]byte, error) {
		next++
		if next > 2*n {
			return out, io.EOF
		}
		if next%2 == 0 {
			return out, nil
		}
		return fmt.Append(out, (next+1)/2), nil
	}
}

// subscribed starts a stream and returns its ID.
func (c *socket) subscribed() (id string) {
	c.t.Helper()
	c.send(call("test_subscribe"))
	if answer := c.receive(); !strings.Contains(answer, `"result"`) {
		c.t.Fatal(answer)
	} else if _, err := fmt.Sscanf(answer, `{"jsonrpc":"2.0","id":1,"result":%q}`, &id); err != nil {
		c.t.Fatalf("%v: %s", err, answer)
	}
	return id
}

// Messages come in order, each costs as much as the call, and after the last one the
// stream stays until it is stopped.
func TestSteps(t *testing.T) {
	p := newPeople(t)
	issued := p.key(account.NewKey{})
	s := start(t, gateway.Config{Networks: []gateway.Network{stepping(numbers(3))}, Keys: p.keys, Usage: p.usage}, 0)
	c := s.dialWith(issued.APIKey, nil)
	id := c.subscribed()
	for i := 1; i <= 3; i++ {
		if got := c.receive(); got != fmt.Sprint(i) {
			t.Errorf("message %d is %s", i, got)
		}
	}
	// The call, three messages, three blank steps and the end, at 5 credits.
	await.Until(t, "40 credits", func() bool {
		lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{issued.Key.ID}, By: usage.ByMethod, To: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(lines, func(l usage.Line) bool { return l.Method == "test_subscribe" && l.Counts.Credits == 8*5 })
	})
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"test_unsubscribe","params":[%q]}`, id))
	if got := c.receive(); !strings.Contains(got, "true") {
		t.Errorf("unsubscribed: %s", got)
	}
}

// Each step takes a slot for heavy calls, and leaves it between steps and when the client
// leaves in the middle of one.
func TestStepsTakeSlots(t *testing.T) {
	began, ended := make(chan int), make(chan error, 1)
	step := func(ctx context.Context, _ string, out []byte) ([]byte, error) {
		began <- 1
		<-ctx.Done()
		ended <- ctx.Err()
		return out, ctx.Err()
	}
	s := start(t, gateway.Config{Networks: []gateway.Network{stepping(step)}, Limits: gateway.Limits{Heavy: 1}}, 0)
	c := s.dial(nil)
	c.subscribed()
	<-began
	if running := s.handler.Stats().HeavyRunning; running != 1 {
		t.Errorf("%d heavy calls run, expected 1", running)
	}
	c.conn.CloseNow()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the step ended with %v", err)
	}
	await.Until(t, "the slot and the memory to be free", func() bool { return s.handler.Stats().HeavyRunning == 0 && s.handler.Stats().HeldBytes == 0 })
}

// A stream waits while its rate is exceeded, and ends with its quota or with an error.
func TestStepsAreLimited(t *testing.T) {
	forever := func(_ context.Context, _ string, out []byte) ([]byte, error) { return append(out, '1'), nil }
	fails := func(_ context.Context, _ string, out []byte) ([]byte, error) { return out, errors.New("no store") }
	panics := func(_ context.Context, _ string, out []byte) ([]byte, error) { panic("a fault") }
	for _, c := range []struct {
		name   string
		rules  account.Rules
		step   jsonrpc.Step
		want   int // messages
		reason string
	}{
		{"a quota", account.Rules{PerDay: 30}, forever, 5, "daily quota exceeded: reached the quota of 30 credits"},
		{"an error", account.Rules{}, fails, 0, "messages of a subscription were lost: connect again"},
		{"a panic", account.Rules{}, panics, 0, "messages of a subscription were lost: connect again"},
	} {
		p := newPeople(t)
		issued := p.key(account.NewKey{Owner: p.account("a@example.org", account.Limits{}), Rules: c.rules})
		answered := make(chan struct{}) // the end of a connection does not wait for answers
		step := func(ctx context.Context, id string, out []byte) ([]byte, error) {
			<-answered
			return c.step(ctx, id, out)
		}
		s := start(t, gateway.Config{Networks: []gateway.Network{stepping(step)}, Keys: p.keys, Usage: p.usage}, 0)
		client := s.dialWith(issued.APIKey, nil)
		client.subscribed()
		close(answered)
		if got := client.drained(websocket.StatusTryAgainLater, c.reason); got != c.want {
			t.Errorf("%s: %d messages, expected %d", c.name, got, c.want)
		}
	}
	p := newPeople(t)
	issued := p.key(account.NewKey{Owner: p.account("a@example.org", account.Limits{}), Rules: account.Rules{PerSecond: 20}})
	s := start(t, gateway.Config{Networks: []gateway.Network{stepping(forever)}, Keys: p.keys, Usage: p.usage}, 0)
	client := s.dialWith(issued.APIKey, nil)
	begun := time.Now()
	client.subscribed()
	for range 10 { // a burst of 40 credits, less 5 of the call, then 4 messages in a second
		client.receive()
	}
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("10 messages took %v, expected a wait for credits", took)
	}
}

// Steps are tried again while the server is busy, for some time.
func TestStepsFindThePlaceTaken(t *testing.T) {
	var tries atomic.Int64
	crowded := func(ctx context.Context, _ string, out []byte) ([]byte, error) {
		if tries.Add(1) == 1 {
			return out, jsonrpc.RoomFor(ctx, out).Check(1 << 30)
		}
		return append(out, '1'), nil
	}
	s := start(t, gateway.Config{
		Networks: []gateway.Network{stepping(crowded)}, Limits: gateway.Limits{Memory: 1 << 20}, RPC: jsonrpc.Config{AnswerBytes: 2 << 30},
	}, 0)
	c := s.dial(nil)
	c.subscribed()
	if got := c.receive(); got != "1" || tries.Load() < 2 {
		t.Errorf("got %s after %d tries", got, tries.Load())
	}
}
