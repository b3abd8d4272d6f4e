package account

import (
	"context"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestRulesAllow(t *testing.T) {
	var token, other Contract
	token[0], other[0] = 1, 2
	rules := &Rules{
		Networks:  []string{"demo"},
		Methods:   []string{"eth_call", "net_*"},
		Origins:   []string{"https://a.test"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		Contracts: []Contract{token},
	}
	mapped := &Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("::ffff:192.0.2.0/120")}}
	at := netip.MustParseAddr
	for _, c := range []struct {
		what      string
		got, want bool
	}{
		{"a network that is listed", rules.AllowsNetwork("demo"), true},
		{"another network", rules.AllowsNetwork("demo2"), false},
		{"a method that is listed", rules.AllowsMethod("eth_call"), true},
		{"a method that begins so", rules.AllowsMethod("eth_callMany"), false},
		{"a method of a family", rules.AllowsMethod("net_version"), true},
		{"another method", rules.AllowsMethod("eth_getLogs"), false},
		{"an origin that is listed", rules.AllowsOrigin("https://a.test"), true},
		{"another origin", rules.AllowsOrigin("https://a.test.evil"), false},
		{"no page", rules.AllowsOrigin(""), true},
		{"an address of a network", rules.AllowsAddress(at("192.0.2.77")), true},
		{"the same within IPv6", rules.AllowsAddress(at("::ffff:192.0.2.77")), true},
		{"an IPv6 address", rules.AllowsAddress(at("2001:db8:1::1")), true},
		{"an address of a network that is written in IPv6", mapped.AllowsAddress(at("192.0.2.77")), true},
		{"another address than of that network", mapped.AllowsAddress(at("192.0.3.77")), false},
		{"another address", rules.AllowsAddress(at("192.0.3.1")), false},
		{"a contract that is listed", rules.AllowsContract(token), true},
		{"another contract", rules.AllowsContract(other), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: allowed %t, expected %t", c.what, c.got, c.want)
		}
	}
	for name, none := range map[string]*Rules{"nil": nil, "empty": {}} {
		if !none.AllowsNetwork("x") || !none.AllowsMethod("x") || !none.AllowsOrigin("x") || !none.AllowsAddress(at("::1")) || !none.AllowsContract(other) {
			t.Errorf("%s rules restrict something", name)
		}
	}
}

func TestRestrict(t *testing.T) {
	ctx, fs := context.Background(), vfs.NewMem()
	store := openStore(t, fs)
	r := openKeyring(t, store)
	secret, k := create(t, r, "name")
	rules := Rules{
		Networks: []string{"demo"}, Methods: []string{"eth_*"}, Origins: []string{"https://a.test:8443"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Contracts: []Contract{{1}}, PerSecond: 5, PerDay: 1 << 40,
	}
	if _, err := r.Restrict(ctx, "name", Rules{PerSecond: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Restrict(ctx, k.ID.String(), rules); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at once", "after opening again"} {
		if got, ok := r.Check(secret); !ok || !reflect.DeepEqual(got.Rules, &rules) || got.Name != "name" {
			t.Errorf("%s: %+v, %t", when, got, ok)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = openStore(t, fs)
		r = openKeyring(t, store)
	}
	if lifted, err := r.Restrict(ctx, "name", Rules{}); err != nil || lifted.Rules != nil {
		t.Errorf("no rules: %+v, %v", lifted, err)
	}
	if _, err := r.Revoke(ctx, "name"); err != nil {
		t.Fatal(err)
	}
	if _, ok := openKeyring(t, store).Check(secret); ok {
		t.Error("a key that was restricted cannot be revoked")
	}
	if _, err := r.Restrict(ctx, k.ID.String(), rules); err == nil || !strings.Contains(err.Error(), "is revoked") {
		t.Errorf("rules for a revoked key: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRulesAreChecked(t *testing.T) {
	for want, rules := range map[string]Rules{
		"invalid method":       {Methods: []string{"eth call"}},
		"invalid origin":       {Origins: []string{"a.test"}},
		"want one such as":     {Origins: []string{"https://a.test/path"}},
		"an address is empty":  {Addresses: []netip.Prefix{{}}},
		"expected at most 100": {Networks: make([]string, 101)},
		"a prefix such as eth": {Methods: []string{""}},
	} {
		if err := rules.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %q", rules, err, want)
		}
	}
}
