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
