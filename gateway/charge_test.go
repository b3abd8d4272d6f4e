package gateway_test

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

// A call that finds no place in the queue is free. A call whose client gives up while it
// waits costs as much as one that runs; otherwise filling the queue would be free.
func TestOnlyWhatIsRefusedCostsNothing(t *testing.T) {
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{PerDay: 5})
	one := p.key(account.NewKey{Owner: id, Rules: account.Rules{PerDay: 4}})
	other := p.key(account.NewKey{Owner: id})
	begun, release := make(chan struct{}, 1), make(chan struct{})
	s := start(t, gateway.Config{
		Networks: []gateway.Network{held(begun, release)}, Keys: p.keys, Usage: p.usage,
		Limits: gateway.Limits{Light: 1, Waiting: 1},
	}, time.Minute)
	statuses := make(chan int)
	go func() {
		status, _, _ := s.with(one.APIKey, call("test_held"))
		statuses <- status
	}()
	<-begun
	waiting := func() bool { return s.handler.Stats().LightWaiting == 1 }
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		asked := gateway.Call{Network: "alpha", Key: &one.Key, Client: netip.MustParseAddr("192.0.2.1"), Request: []byte(call("test_name"))}
		s.handler.Do(ctx, asked, func(gateway.Reply) {})
	}()
	await.Until(t, "a call that waits", waiting)
	leave()
	<-left
	go func() {
		status, _, _ := s.with(one.APIKey, call("test_name"))
		statuses <- status
	}()
	await.Until(t, "a call that waits", waiting)
	for range 5 {
		if status, _, answer := s.with(one.APIKey, call("test_name")); status != 503 {
			t.Errorf("no place to wait: %d %s", status, answer)
		}
	}
	close(release)
	for range 2 {
		if status := <-statuses; status != 200 {
			t.Errorf("status %d of what was let through", status)
		}
	}
	for i, c := range []struct {
		key  string
		want int
	}{{one.APIKey, 200}, {one.APIKey, 429}, {other.APIKey, 200}, {other.APIKey, 429}} {
		if status, _, answer := s.with(c.key, call("test_name")); status != c.want {
			t.Errorf("call %d after it: %d %s, expected %d", i, status, answer, c.want)
		}
	}
	lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{one.Key.ID}, To: time.Now().Add(time.Hour)})
	if err != nil || len(lines) != 1 || lines[0].Counts.Credits != 4 || lines[0].Counts.Requests != 10 {
		t.Errorf("counted %+v, %v: expected 4 credits for 10 requests", lines, err)
	}
}

// A call that is refused after midnight returns nothing to the quotas of the new day, which it has not
// spent.
func TestRefusalsAfterMidnightReturnNothing(t *testing.T) {
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{})
	lost := errors.New("too few nodes answer")
	begun, release := make(chan struct{}), make(chan struct{})
	alpha := network("alpha")
	alpha.Methods = jsonrpctest.With(alpha.Methods, jsonrpctest.Method("test_held", func(_ context.Context, _, out []byte) ([]byte, error) {
		begun <- struct{}{}
		<-release
		return out, lost
	}))
	for name, limits := range map[string]struct{ account, key uint64 }{"of the key": {0, 1}, "of the account": {1, 0}} {
		var days atomic.Int64
		s := start(t, gateway.Config{
			Networks: []gateway.Network{alpha}, Keys: p.keys, Unavailable: func(err error) bool { return errors.Is(err, lost) },
			Today: func() time.Time { return someDay.Add(time.Duration(days.Load()) * 24 * time.Hour) },
		}, time.Minute)
		p.must(p.accounts.SetLimits(t.Context(), "a@example.org", account.Limits{PerDay: limits.account}))
		key := p.key(account.NewKey{Owner: id, Rules: account.Rules{PerDay: limits.key}})
		refused := make(chan int)
		go func() {
			status, _, _ := s.with(key.APIKey, call("test_held"))
			refused <- status
		}()
		<-begun
		days.Store(1)
		if status, _, answer := s.with(key.APIKey, call("test_name")); status != 200 {
			t.Errorf("quota %s on the next day: %d %s", name, status, answer)
		}
		release <- struct{}{}
		if status := <-refused; status != 503 {
			t.Errorf("quota %s: status %d of the call that fails, expected 503", name, status)
		}
		if status, _, answer := s.with(key.APIKey, call("test_name")); status != 429 {
			t.Errorf("quota %s, which is spent: %d %s, expected 429", name, status, answer)
		}
	}
}

// A call that fails because the store cannot be reached is not in the usage from which a
// server counts the quota of the day again when it starts.
func TestWhatIsUnavailableIsNotInTheUsage(t *testing.T) {
	p := newPeople(t)
	one := p.key(account.NewKey{Rules: account.Rules{PerDay: 4}})
	lost := errors.New("too few nodes answer")
	fails := func(_ context.Context, _, out []byte) ([]byte, error) { return out, lost }
	s := start(t, gateway.Config{
		Networks: []gateway.Network{{Name: "alpha", Methods: jsonrpctest.Methods(jsonrpc.Handlers{"test_read": fails})}},
		Keys:     p.keys, Usage: p.usage, Unavailable: func(err error) bool { return errors.Is(err, lost) },
	}, 0)
	for range 5 {
		if status, _, answer := s.with(one.APIKey, call("test_read")); status != 503 {
			t.Errorf("%d %s", status, answer)
		}
	}
	lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{one.Key.ID}, To: time.Now().Add(time.Hour)})
	if err != nil || len(lines) != 1 || lines[0].Counts.Credits != 0 || lines[0].Counts.Requests != 5 {
		t.Errorf("counted %+v, %v: expected no credits for 5 requests", lines, err)
	}
}
