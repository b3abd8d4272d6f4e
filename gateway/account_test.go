package gateway_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/limit"

	"github.com/coder/websocket"
)

// All keys of an account share its limits; other keys are not affected.
func TestLimitsOfAccounts(t *testing.T) {
	synctest.Test(t, testLimitsOfAccounts) // no time passes between calls
}

func testLimitsOfAccounts(t *testing.T) {
	p := newPeople(t)
	rated := p.account("rated@example.org", account.Limits{PerSecond: 1})
	daily := p.account("daily@example.org", account.Limits{PerDay: 3})
	standard := p.account("standard@example.org", account.Limits{})
	of := func(id account.ID) [2]string {
		return [2]string{p.key(account.NewKey{Owner: id}).APIKey, p.key(account.NewKey{Owner: id}).APIKey}
	}
	handler, err := gateway.New(gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Keys: p.keys,
		Limits: gateway.Limits{Account: gateway.KeyLimits{PerDay: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(key string) (int, string) {
		return from(t, handler, "192.0.2.1:1", "http://a.test/v3/"+key, call("test_name"))
	}
	for _, c := range []struct {
		name    string
		keys    [2]string
		allowed int
		want    string
	}{
		{"a rate, of which that of two seconds is saved up", of(rated), 2, "request rate of the account exceeded: the rate limit is 1 credit per second"},
		{"a quota", of(daily), 3, "daily quota of the account exceeded: reached the quota of 3 credits"},
		{"what holds for all accounts", of(standard), 2, "daily quota of the account exceeded: reached the quota of 2 credits"},
	} {
		for n := range c.allowed {
			if status, answer := ask(c.keys[n%2]); status != 200 {
				t.Errorf("%s, call %d: %d %s", c.name, n, status, answer)
			}
		}
		for _, key := range c.keys {
			status, answer := ask(key)
			f := decodeFailure(t, answer)
			if status != 429 || f.Error.Code != -32005 || f.Error.Message != c.want || f.Error.Data.Backoff <= 0 || f.Error.Data.Allowed <= 0 && (f.Error.Data.Used != uint64(c.allowed) || f.Error.Data.Quota != uint64(c.allowed)) {
				t.Errorf("%s, one more: %d %s", c.name, status, answer)
			}
		}
	}
	operators := p.key(account.NewKey{})
	for range 5 {
		if status, answer := ask(operators.APIKey); status != 200 {
			t.Errorf("the operator's key: %d %s", status, answer)
		}
	}
	p.must(p.accounts.SetLimits(t.Context(), "daily@example.org", account.Limits{PerDay: 4}))
	key := p.key(account.NewKey{Owner: daily}).APIKey
	for _, want := range []int{200, 429} { // credits spent today still count
		if status, answer := ask(key); status != want {
			t.Errorf("another quota: %d %s, expected %d", status, answer, want)
		}
	}
}

// A call that a key's own quota refuses is not charged to its account.
func TestRefusalsCostAccountsNothing(t *testing.T) {
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{PerDay: 3})
	small := p.key(account.NewKey{Owner: id, Rules: account.Rules{PerDay: 1}}).APIKey
	large := p.key(account.NewKey{Owner: id}).APIKey
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys}, 0)
	for i, c := range []struct {
		key  string
		want int
	}{{small, 200}, {small, 429}, {small, 429}, {large, 200}, {large, 200}, {large, 429}} {
		if status, _, answer := s.with(c.key, call("test_name")); status != c.want {
			t.Errorf("call %d: %d %s, expected %d", i, status, answer, c.want)
		}
	}
}

// The credits of a day survive a restart.
func TestQuotasGoOnAfterARestart(t *testing.T) {
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{PerDay: 5})
	one := p.key(account.NewKey{Owner: id, Rules: account.Rules{PerDay: 4}})
	other := p.key(account.NewKey{Owner: id})
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys}, 0)
	s.handler.Restore(&one.Key, 3)
	for _, want := range []int{200, 429} {
		if status, _, answer := s.with(one.APIKey, call("test_name")); status != want {
			t.Errorf("the key: %d %s, expected %d", status, answer, want)
		}
	}
	for _, want := range []int{200, 429} {
		if status, _, answer := s.with(other.APIKey, call("test_name")); status != want {
			t.Errorf("another key of the account: %d %s, expected %d", status, answer, want)
		}
	}
}

func TestGuardedKeys(t *testing.T) {
	p := newPeople(t)
	issued := p.key(account.NewKey{Guarded: true})
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Origins: []string{gateway.AnyOrigin},
		Limits: gateway.Limits{Failures: limit.Rate{PerSecond: 0.001, Burst: 5}},
	}, 0)
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"the password, as Infura's clients send it", []string{"Authorization", basic("", issued.Password)}, 200},
		{"with any name", []string{"Authorization", basic("anyone", issued.Password)}, 200},
		{"no password", nil, 401},
		{"a wrong one", []string{"Authorization", basic("", issued.Password[1:])}, 401},
		{"the key", []string{"Authorization", basic("", issued.APIKey)}, 401},
		{"another scheme", []string{"Authorization", "Bearer " + issued.Password}, 401},
	} {
		status, header, answer := s.with(issued.APIKey, call("test_name"), c.headers...)
		if status != c.want || status == 401 && !strings.Contains(answer, "invalid project secret") || header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %d %s", c.name, status, answer)
		}
		if strings.Contains(answer, issued.Password) || strings.Contains(answer, issued.APIKey) {
			t.Errorf("%s: the answer repeats a secret: %s", c.name, answer)
		}
	}
	socket := s.dialWith(issued.APIKey, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {basic("", issued.Password)}}})
	socket.send(call("test_name"))
	if got := socket.receive(); !strings.Contains(got, "alpha") {
		t.Errorf("by WebSocket: %s", got)
	}
	if _, response, err := websocket.Dial(t.Context(), s.url+"/ws/v3/"+issued.APIKey, nil); err == nil || response.StatusCode != 401 {
		t.Errorf("a WebSocket without the password: %v", err)
	}
	if status, _, _ := s.with(issued.APIKey, call("test_name")); status != 429 { // guessing is what it is
		t.Errorf("after as many wrong passwords as an address has: %d", status)
	}
	p.must(p.keys.Guard(t.Context(), issued.Key.ID.String()))
	socket.expectClosed(websocket.StatusPolicyViolation, "invalid project id")
	if log := s.log.String(); strings.Contains(log, issued.Password) || strings.Contains(log, issued.APIKey) {
		t.Errorf("a secret is in the log: %s", log)
	}
}

// When a key ends, its connections end within a second, and no others.
func TestOpenSocketsEndWithTheirKey(t *testing.T) {
	ctx := t.Context()
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{})
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys}, 0)
	stays := s.dialWith(p.key(account.NewKey{}).APIKey, nil)
	for _, c := range []struct {
		name string
		key  account.NewKey
		end  func(key string) error
	}{
		{"revoked", account.NewKey{}, func(key string) error { _, err := p.keys.Revoke(ctx, key); return err }},
		{"rotated without overlap", account.NewKey{}, func(key string) error { _, err := p.keys.Rotate(ctx, key, 0); return err }},
		{"its account disabled", account.NewKey{Owner: id}, func(string) error { _, err := p.accounts.Disable(ctx, id.String()); return err }},
	} {
		issued := p.key(c.key)
		socket := s.dialWith(issued.APIKey, nil)
		socket.send(call("test_name"))
		socket.receive()
		if err := c.end(issued.Key.ID.String()); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		socket.expectClosed(websocket.StatusPolicyViolation, "invalid project id")
		t.Logf("%s: closed after %v", c.name, time.Since(ended).Round(time.Millisecond))
		if status, _, answer := s.with(issued.APIKey, call("test_name")); status != 401 || !strings.Contains(answer, "invalid project id") {
			t.Errorf("%s: over HTTP %d %s", c.name, status, answer)
		}
	}

	issued := p.key(account.NewKey{})
	old := s.dialWith(issued.APIKey, nil)
	rotated, err := p.keys.Rotate(ctx, issued.Key.ID.String(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	present := s.dialWith(rotated.APIKey, nil)
	for what, socket := range map[string]*socket{"the old text": old, "the new text": present} {
		socket.send(call("test_name"))
		if got := socket.receive(); !strings.Contains(got, "alpha") {
			t.Errorf("%s, while both are right: %s", what, got)
		}
	}
	p.ahead.Store(int64(time.Hour)) // the overlap is over
	old.expectClosed(websocket.StatusPolicyViolation, "invalid project id")
	for what, socket := range map[string]*socket{"the new text": present, "another key": stays} {
		socket.send(call("test_name"))
		if got := socket.receive(); !strings.Contains(got, "alpha") {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// The owner of a key can lower its limits, but cannot exceed the server's or get a new
// burst. The operator's own keys have the limits in their rules.
func TestOwnersCannotLiftTheLimitOfKeys(t *testing.T) {
	p := newPeople(t)
	owner := p.account("a@example.org", account.Limits{})
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Keys: p.keys,
		Limits: gateway.Limits{Key: gateway.KeyLimits{Rate: limit.Rate{PerSecond: 0.001, Burst: 4}, PerDay: 1000}},
	}, 0)
	allowed := func(key string) (n int) {
		for range 12 {
			if status, _, _ := s.with(key, call("test_name")); status == 200 {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name  string
		key   account.NewKey
		wants int
	}{
		{"an owner's without rules", account.NewKey{Owner: owner}, 4},
		{"an owner's that asks for more a second", account.NewKey{Owner: owner, Rules: account.Rules{PerSecond: 1 << 31}}, 4},
		{"an owner's that asks for more a day", account.NewKey{Owner: owner, Rules: account.Rules{PerDay: 1 << 40}}, 4},
		{"an owner's that asks for less a day", account.NewKey{Owner: owner, Rules: account.Rules{PerDay: 3}}, 3},
		{"the operator's that asks for more a second", account.NewKey{Rules: account.Rules{PerSecond: 1 << 31}}, 12},
	} {
		issued := p.key(c.key)
		if got := allowed(issued.APIKey); got != c.wants {
			t.Errorf("%s: %d answered, expected %d", c.name, got, c.wants)
		}
		if !c.key.Owner.IsZero() {
			rules := c.key.Rules
			rules.Methods = []string{"test_*"}
			p.must(p.keys.Of(owner).Restrict(t.Context(), issued.Key.ID.String(), rules))
			if got := allowed(issued.APIKey); got != 0 {
				t.Errorf("%s: %d answered once its rules were saved again, expected 0", c.name, got)
			}
		}
	}
}

// Subscriptions that a key's new rules forbid end on open connections, even if the client
// sends nothing; permitted ones continue.
func TestRulesEndWhatBeganBefore(t *testing.T) {
	const changed = "the rules of the key have changed: connect again"
	wide := &account.Rules{Methods: []string{"test_*"}, PerSecond: 1000}
	for _, c := range []struct {
		name          string
		before, after *account.Rules
		subscribed    bool
		want          string // "" if the connection stays open
	}{
		{"another network", nil, &account.Rules{Networks: []string{"beta"}}, false, "network not allowed: the key's rules do not list alpha"},
		{"another network, of a subscriber", nil, &account.Rules{Networks: []string{"beta"}}, true, "network not allowed: the key's rules do not list alpha"},
		{"another address", nil, &account.Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, false,
			"address not allowed: the key's rules do not list the client's address"},
		{"other methods, of a subscriber", nil, &account.Rules{Methods: []string{"test_name"}}, true, changed},
		{"fewer methods, of a subscriber", wide, &account.Rules{Methods: []string{"test_name"}}, true, changed},
		{"other contracts, of a subscriber", wide, &account.Rules{Methods: wide.Methods, Contracts: []account.Contract{{1}}}, true, changed},
		{"other methods, without a subscription", nil, &account.Rules{Methods: []string{"test_name"}}, false, ""},
		{"another rate, of a subscriber", wide, &account.Rules{Methods: []string{"test_*"}, PerSecond: 2000}, true, ""},
		{"the same network, of a subscriber", nil, &account.Rules{Networks: []string{"alpha"}}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			keys := new(ruled)
			keys.set(c.before)
			s := start(t, gateway.Config{Networks: []gateway.Network{streaming(1, 0, make(chan error, 1))}, Keys: keys}, 0)
			client := s.dial(nil)
			if c.subscribed {
				client.send(call("test_subscribe"))
				client.receive() // the answer
				client.receive() // the stream's message
			}
			keys.set(c.after)
			if c.want != "" {
				client.expectClosed(websocket.StatusPolicyViolation, c.want)
				return
			}
			time.Sleep(1200 * time.Millisecond) // two sweeps
			client.send(call("test_name"))
			if got := client.receive(); !strings.Contains(got, "alpha") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// slowlyStreaming returns a network with the method test_slow, which closes begun, waits for release, and
// subscribes as test_subscribe does.
func slowlyStreaming() (alpha gateway.Network, begun, release chan struct{}) {
	begun, release = make(chan struct{}), make(chan struct{})
	alpha = streaming(1, 0, make(chan error, 2))
	subscribe := alpha.Methods.Find("test_subscribe").Handler
	alpha.Methods = jsonrpctest.With(alpha.Methods, jsonrpctest.Method("test_slow", func(ctx context.Context, params, out []byte) ([]byte, error) {
		close(begun)
		<-release
		return subscribe(ctx, params, out)
	}))
	return alpha, begun, release
}

// A subscription admitted before the rules changed does not join those that began under the
// new rules.
func TestStreamsBeginUnderOneRule(t *testing.T) {
	keys := new(ruled)
	keys.set(nil)
	alpha, begun, release := slowlyStreaming()
	s := start(t, gateway.Config{Networks: []gateway.Network{alpha}, Keys: keys}, 0)
	client := s.dial(nil)
	client.send(call("test_slow"))
	<-begun
	keys.set(&account.Rules{Methods: []string{"test_subscribe"}})
	client.send(call("test_subscribe"))
	client.receive() // the answer
	client.receive() // the stream's message
	close(release)
	if got := client.receive(); !strings.Contains(got, `"code":-32002,"message":"the rules of the key have changed: connect again"`) {
		t.Errorf("got %s", got)
	}
}

// Every call is counted for its key: over HTTP, by WebSocket, and refused ones.
func TestUsageIsCounted(t *testing.T) {
	p := newPeople(t)
	one, other := p.key(account.NewKey{}), p.key(account.NewKey{Rules: account.Rules{Methods: []string{"test_name"}}})
	var observed tally
	n := network("alpha")
	n.Observer = &observed
	s := start(t, gateway.Config{
		Networks: []gateway.Network{n}, Keys: p.keys, Usage: p.usage,
		Credits: func(method *jsonrpc.Method) int { return len(method.Name) },
	}, 0)
	s.with(one.APIKey, call("test_name"))
	s.with(one.APIKey, "["+call("test_name")+","+call("test_fail")+"]")
	s.with(one.APIKey, call("made_up"))
	s.with(other.APIKey, call("test_echo"))
	socket := s.dialWith(one.APIKey, nil)
	socket.send(call("test_name"))
	socket.receive()
	lines, err := p.usage.Read(t.Context(), usage.Query{
		Keys: []account.KeyID{one.Key.ID, other.Key.ID}, By: usage.ByKey | usage.ByNetwork | usage.ByMethod, To: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][3]uint64)
	for _, l := range lines {
		name := map[account.KeyID]string{one.Key.ID: "one", other.Key.ID: "other"}[l.Key]
		got[name+" "+l.Network+" "+l.Method] = [3]uint64{l.Requests, l.Errors, l.Credits}
	}
	for what, want := range map[string][3]uint64{
		"one alpha test_name":   {3, 0, 27},
		"one alpha test_fail":   {1, 1, 9},
		"one alpha ":            {1, 1, 1},
		"other alpha test_echo": {1, 1, 1},
	} {
		if got[what] != want {
			t.Errorf("%s: %v requests, errors and credits; expected %v", what, got[what], want)
		}
		delete(got, what)
	}
	if len(got) > 0 || observed.n.Load() != 6 {
		t.Errorf("counted besides: %v; another observer saw %d calls", got, observed.n.Load())
	}
}

// tally is an Observer that counts.
type tally struct{ n atomic.Int64 }

func (o *tally) Called(context.Context, jsonrpc.Completed) { o.n.Add(1) }
