package gateway_test

import (
	"testing"
	"testing/synctest"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/jsonrpc"
)

// TestLimitsOfAccountsAndBack: the keys of an account share its rate also after it was changed
// and changed back, whichever of them were used in between.
func TestLimitsOfAccountsAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes between calls
		p := newPeople(t)
		id := p.account("a@example.org", account.Limits{PerSecond: 10})
		idle, busy := p.key(account.NewKey{Owner: id}), p.key(account.NewKey{Owner: id})
		handler, err := gateway.New(gateway.Config{
			Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Credits: func(*jsonrpc.Method) int { return 20 },
		})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(key account.Issued, want int) {
			t.Helper()
			if status, answer := from(t, handler, "192.0.2.1:1", "http://a.test/v3/"+key.APIKey, call("test_name")); status != want {
				t.Errorf("%d %s, expected %d", status, answer, want)
			}
		}
		ask(idle, 200)
		p.must(p.accounts.SetLimits(t.Context(), "a@example.org", account.Limits{PerSecond: 5}))
		ask(busy, 200)
		p.must(p.accounts.SetLimits(t.Context(), "a@example.org", account.Limits{PerSecond: 10}))
		ask(idle, 200) // each limit begins with a full burst
		ask(busy, 429)
	})
}

// TestRefusalsReturnNothingToAccounts: a call that a key's own quota refuses returns nothing to
// an account without one, or a later quota of the account would not know what was spent.
func TestRefusalsReturnNothingToAccounts(t *testing.T) {
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{})
	small, large := p.key(account.NewKey{Owner: id, Rules: account.Rules{PerDay: 3}}), p.key(account.NewKey{Owner: id})
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys}, 0)
	s.handler.Restore(&small.Key, 3)
	for range 3 {
		if status, _, answer := s.with(small.APIKey, call("test_name")); status != 429 {
			t.Errorf("over the key's quota: %d %s", status, answer)
		}
	}
	p.must(p.accounts.SetLimits(t.Context(), "a@example.org", account.Limits{PerDay: 4}))
	for _, want := range []int{200, 429} {
		if status, _, answer := s.with(large.APIKey, call("test_name")); status != want {
			t.Errorf("of the account's quota: %d %s, expected %d", status, answer, want)
		}
	}
}

// TestQuotaSetDuringTheDay: a quota counts what was spent that day before it was set, as it does after a
// restart.
func TestQuotaSetDuringTheDay(t *testing.T) {
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{})
	key := p.key(account.NewKey{Owner: id})
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys}, 0)
	ask := func(want ...int) {
		t.Helper()
		for i, want := range want {
			if status, _, answer := s.with(key.APIKey, call("test_name")); status != want {
				t.Errorf("call %d: %d %s, expected %d", i, status, answer, want)
			}
		}
	}
	ask(200, 200, 200)
	p.must(p.accounts.SetLimits(t.Context(), "a@example.org", account.Limits{PerDay: 4}))
	ask(200, 429)
	p.must(p.accounts.SetLimits(t.Context(), "a@example.org", account.Limits{}))
	ask(200, 200) // 6 credits
	p.must(p.keys.Of(id).Restrict(t.Context(), key.Key.ID.String(), account.Rules{PerDay: 7}))
	ask(200, 429)
}
