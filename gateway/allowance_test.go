package gateway_test

import (
	"testing"

	"ashlar/account"
	"ashlar/gateway"
)

// The limits that are shown are those that calls run into, and name their sources.
func TestAllowance(t *testing.T) {
	p := newPeople(t)
	limits := gateway.Limits{
		Key:     gateway.KeyLimits{Rate: gateway.PerSecond(100), PerDay: 3000},
		Account: gateway.KeyLimits{PerDay: 5000}, Address: gateway.PerSecond(70),
	}
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Usage: p.usage, Limits: limits}, 0)
	plain := p.account("plain@example.org", account.Limits{})
	special := p.account("special@example.org", account.Limits{PerSecond: 30, PerDay: 40})
	lower := account.Rules{PerSecond: 50, PerDay: 20}
	higher := account.Rules{PerSecond: 500, PerDay: 9000}
	create := func(owner account.ID, rules account.Rules) account.Issued {
		issued, err := p.keys.Of(owner).Create(t.Context(), account.NewKey{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		return issued
	}
	for name, c := range map[string]struct {
		key       account.Issued
		rate, day account.Bound
	}{
		"the configuration":                     {create(plain, account.Rules{}), account.Bound{Source: account.AddressDefault, Credits: 70}, account.Bound{Source: account.KeyDefault, Credits: 3000, Used: 2}},
		"a rule":                                {create(plain, lower), account.Bound{Source: account.KeyRule, Credits: 50}, account.Bound{Source: account.KeyRule, Credits: 20, Used: 2}},
		"a rule that is over the configuration": {create(plain, higher), account.Bound{Source: account.AddressDefault, Credits: 70}, account.Bound{Source: account.KeyDefault, Credits: 3000, Used: 2}},
		"the account":                           {create(special, account.Rules{}), account.Bound{Source: account.AccountLimit, Credits: 30}, account.Bound{Source: account.AccountLimit, Credits: 40, Used: 2}},
	} {
		s.with(c.key.APIKey, call("test_name"))
		s.with(c.key.APIKey, call("test_name"))
		key, err := p.keys.Find(c.key.Key.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		a := s.handler.Allowance(&key)
		rate, _ := a.Rate()
		rate.Used = 0 // it depends on time
		if day, _ := a.Quota(); rate != c.rate || day != c.day {
			t.Errorf("%s: %+v a second and %+v a day, expected %+v and %+v", name, rate, day, c.rate, c.day)
		}
	}
	operator := p.key(account.NewKey{Rules: account.Rules{PerDay: 9}})
	if quota, ok := s.handler.Allowance(&operator.Key).Quota(); !ok || quota != (account.Bound{Source: account.KeyRule, Credits: 9}) {
		t.Errorf("an operator's key has the quota %+v, %v", quota, ok)
	}
}
