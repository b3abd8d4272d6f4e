package account

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// rows returns the number of revisions of a key in the store.
func (f *fixture) rows(id string) uint64 {
	f.Helper()
	k, err := f.keys.find(id)
	if err != nil {
		f.Fatal(err)
	}
	return k.number + 1
}

// Each change is stored permanently, so the number of changes by a user is limited.
func TestChangesAreCounted(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	mine, session := f.register(somebody, secret)
	yours, _ := f.register("other@example.org", secret)
	keys := f.keys.Of(mine.ID)
	id := f.key(keys, NewKey{Name: "a"}).Key.ID.String()
	leaked := f.key(keys, NewKey{Name: "leaked"}).Key.ID.String()
	for i := range changesBurst - 2 {
		if _, err := keys.Restrict(ctx, id, Rules{PerDay: uint64(i + 1)}); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	rules := Rules{PerDay: 1}
	tried := map[string]func() error{
		"create":           func() error { _, err := keys.Create(ctx, NewKey{}); return err },
		"edit":             func() error { _, err := keys.Edit(ctx, id, KeyEdit{Rules: &rules}); return err },
		"rotate":           func() error { _, err := keys.Rotate(ctx, id, 0); return err },
		"guard":            func() error { _, err := keys.Guard(ctx, id); return err },
		"end the sessions": func() error { _, _, err := f.accounts.EndSessions(ctx, session); return err },
	}
	before := f.rows(id)
	for what, do := range tried {
		var soon *TooSoon
		if err := do(); !errors.As(err, &soon) || soon.Wait != 30*time.Second || soon.Error() != "too many changes: try again in 30 s" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now := f.rows(id); now != before {
		t.Errorf("rejected changes are stored: %d revisions, expected %d", now, before)
	}
	if _, err := keys.Revoke(ctx, leaked); err != nil {
		t.Errorf("a key cannot be revoked: %v", err)
	}
	if _, err := f.keys.Of(yours.ID).Create(ctx, NewKey{}); err != nil {
		t.Errorf("another account: %v", err)
	}
	if _, err := f.keys.Restrict(ctx, id, rules); err != nil {
		t.Errorf("the operator: %v", err)
	}
	for what, do := range tried {
		f.pass(30 * time.Second)
		if what == "edit" {
			rules.PerDay = 2
		}
		if err := do(); err != nil {
			t.Errorf("%s after waiting: %v", what, err)
		}
	}
}

// An edit without changes is neither stored nor counted.
func TestUnchangedKeysAreNotStored(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	a, _ := f.register(somebody, secret)
	keys := f.keys.Of(a.ID)
	ends := f.Now().Add(time.Hour)
	rules := func() *Rules {
		return &Rules{
			Networks: []string{"demo"}, Methods: []string{"eth_*"}, Origins: []string{"https://a.test"},
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Contracts: []Contract{{1}}, PerSecond: 5, PerDay: 6,
		}
	}
	issued := f.key(keys, NewKey{Name: "a", Rules: *rules(), Expires: ends})
	free := f.key(keys, NewKey{Name: "free"})
	name := "a"
	for range 2 * changesBurst {
		for id, edit := range map[string]KeyEdit{
			issued.Key.ID.String(): {Name: &name, Rules: rules(), Expires: &ends},
			free.Key.ID.String():   {Rules: &Rules{Methods: []string{}}},
		} {
			if _, err := keys.Edit(t.Context(), id, edit); err != nil {
				t.Fatal(err)
			}
			if n := f.rows(id); n != 1 {
				t.Fatalf("%d revisions, expected 1", n)
			}
		}
	}
	for what, change := range map[string]func(*Rules){
		"networks":    func(r *Rules) { r.Networks = nil },
		"methods":     func(r *Rules) { r.Methods = nil },
		"origins":     func(r *Rules) { r.Origins = nil },
		"addresses":   func(r *Rules) { r.Addresses = nil },
		"contracts":   func(r *Rules) { r.Contracts = nil },
		"credits":     func(r *Rules) { r.PerSecond = 1 },
		"daily quota": func(r *Rules) { r.PerDay = 1 },
	} {
		other := rules()
		if change(other); other.equal(rules()) || rules().equal(other) {
			t.Errorf("rules with other %s are considered equal", what)
		}
	}
}

// New rules are limited in length. Longer ones from before the limits existed stay valid.
func TestRuleLengths(t *testing.T) {
	origin := func(n int) string { return "https://" + strings.Repeat("a", n-len("https://")) }
	long := Rules{Origins: []string{origin(2400)}}
	var all Rules
	for i := range maxRules {
		all.Origins = append(all.Origins, origin(200)+fmt.Sprint(i))
	}
	for want, rules := range map[string]Rules{
		"an origin of 301 bytes, expected at most 300": {Origins: []string{origin(301)}},
		"a method of 101 bytes, expected at most 100":  {Methods: []string{strings.Repeat("e", 101)}},
		"bytes of rules, expected at most 16384":       all,
		"(want one such as https://ap":                 {Origins: []string{"a.test"}},
	} {
		var wrong *Invalid
		if err := rules.CheckChange(nil); !errors.As(err, &wrong) || wrong.Field != FieldRules || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	if err := (&Rules{Origins: []string{origin(300)}, Methods: []string{strings.Repeat("e", 100)}}).CheckChange(nil); err != nil {
		t.Errorf("rules at the limits: %v", err)
	}

	f := newFixture(t, Config{})
	issued := f.key(f.keys, NewKey{Name: "old"})
	k, err := f.keys.find("old")
	if err != nil {
		t.Fatal(err)
	}
	old := *k
	old.number, old.Rules = old.number+1, &long
	if err := f.keys.put(t.Context(), onceDurable, &old, "create"); err != nil {
		t.Fatal(err)
	}
	if !f.accepts(issued.APIKey) {
		t.Error("an old key with long rules is rejected")
	}
	if _, err := f.keys.Rotate(t.Context(), "old", 0); err != nil {
		t.Errorf("an old key with long rules cannot be rotated: %v", err)
	}
}

// A change is checked, and what was stored before the checks existed is not checked again.
func TestOnlyChangesAreChecked(t *testing.T) {
	f := newFixture(t, Config{})
	f.key(f.keys, NewKey{Name: "old"})
	k, err := f.keys.find("old")
	if err != nil {
		t.Fatal(err)
	}
	const unsent = "https://App.example.org"
	stored, name := *k, strings.Repeat("n", maxName+1)
	stored.number++
	stored.Name, stored.Expires = name, wholeSeconds(f.Now().Add(-time.Hour))
	id, over := k.ID.String(), f.Now().Add(-time.Minute)
	with := func(change func(*Rules)) *Rules {
		r := *stored.Rules
		change(&r)
		return &r
	}
	stored.Rules = &Rules{Origins: []string{unsent}, Methods: []string{strings.Repeat("e", maxMethod+1)}}
	var many, large []string
	for i := range maxRules {
		many = append(many, fmt.Sprint("https://app.example.org:", 1000+i))
		large = append(large, fmt.Sprint("https://", strings.Repeat("a", 250), i))
	}
	stored.Rules.Origins = append(large[:maxRules/2:maxRules/2], unsent) // 13 KiB
	if err := f.keys.put(t.Context(), onceDurable, &stored, "create"); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		edit  KeyEdit
		field Field // that is refused; empty: none is
	}{
		"a new name beside the rules":       {KeyEdit{Name: new("new"), Rules: with(func(*Rules) {}), Expires: &stored.Expires}, ""},
		"the old name":                      {KeyEdit{Name: &name, Rules: with(func(r *Rules) { r.PerDay = 1 })}, ""},
		"another origin beside the old":     {KeyEdit{Rules: with(func(r *Rules) { r.Origins = []string{"https://a.example.org", unsent} })}, ""},
		"another origin that is never sent": {KeyEdit{Rules: with(func(r *Rules) { r.Origins = []string{"https://A.example.org", unsent} })}, FieldRules},
		"another long method":               {KeyEdit{Rules: with(func(r *Rules) { r.Methods = []string{strings.Repeat("f", maxMethod+1)} })}, FieldRules},
		"more bytes than rules may have":    {KeyEdit{Rules: with(func(r *Rules) { r.Origins = slices.Concat(r.Origins, large[maxRules/2:80]) })}, FieldRules},
		"too many origins with the old":     {KeyEdit{Rules: with(func(r *Rules) { r.Origins = append(many, unsent) })}, FieldRules},
		"another long name":                 {KeyEdit{Name: new("x" + name)}, FieldName},
		"another time in the past":          {KeyEdit{Expires: &over}, FieldExpires},
	} {
		var invalid *Invalid
		_, err := f.keys.Edit(t.Context(), id, test.edit)
		if errors.As(err, &invalid); test.field == "" && err != nil || test.field != "" && (invalid == nil || invalid.Field != test.field) {
			t.Errorf("%s: %v, expected that the field %q is refused", what, err, test.field)
		}
		back := stored // as it was, for the next one
		if now, err := f.keys.find(id); err != nil {
			t.Fatal(err)
		} else if back.number = now.number + 1; test.field == "" {
			if err := f.keys.put(t.Context(), onceDurable, &back, "create"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A time to wait is written in the unit that suits it, and never shorter than it is.
func TestTimesToWait(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Millisecond: "1 s", 2 * time.Minute: "120 s", 2*time.Minute + 1: "3 minutes", 10 * time.Minute: "10 minutes",
		2 * time.Hour: "120 minutes", 2*time.Hour + 1: "3 hours", 8 * time.Hour: "8 hours",
	} {
		if got := (&TooSoon{What: "new teams", Wait: wait}).Error(); got != "too many new teams: try again in "+want {
			t.Errorf("%v: %s", wait, got)
		}
	}
}
