package account

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func (f *fixture) key(r *Keyring, n NewKey) Issued {
	f.Helper()
	issued, err := r.Create(f.Context(), n)
	if err != nil {
		f.Fatal(err)
	}
	return issued
}

// accepts reports whether a key is accepted. The result must be the same after the store was
// opened again.
func (f *fixture) accepts(text string) bool {
	f.Helper()
	_, now := f.keys.Check(text)
	f.reopen()
	if _, again := f.keys.Check(text); again != now {
		f.Errorf("the key is accepted: %t; after opening again: %t", now, again)
	}
	return now
}

func TestKeysRotateWithOverlap(t *testing.T) {
	f := newFixture(t, Config{})
	first := f.key(f.keys, NewKey{Name: "a", Rules: Rules{PerDay: 5}, Guarded: true})
	id := first.Key.ID.String()
	second, err := f.keys.Rotate(t.Context(), id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if second.Key.ID != first.Key.ID || second.APIKey == first.APIKey || second.Key.Rules.PerDay != 5 || second.Key.Overlap != f.Now().Add(time.Hour) || !second.Key.Rotated.Equal(f.Now()) {
		t.Errorf("rotated to %+v", second.Key)
	}
	if k, ok := f.keys.Check(second.APIKey); !ok || !k.Accepts(first.Password) || k.Accepts("") {
		t.Error("the key has lost its password")
	}
	if !f.accepts(first.APIKey) || !f.accepts(second.APIKey) {
		t.Error("one of the secrets is rejected during the overlap")
	}
	f.pass(time.Hour)
	if f.accepts(first.APIKey) || !f.accepts(second.APIKey) {
		t.Error("after the overlap the old secret is accepted, or the new one rejected")
	}

	third, err := f.keys.Rotate(t.Context(), id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	fourth, err := f.keys.Rotate(t.Context(), id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if f.accepts(second.APIKey) || !f.accepts(third.APIKey) || !f.accepts(fourth.APIKey) {
		t.Error("of three secrets, the two newest should be accepted")
	}
	fifth, err := f.keys.Rotate(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.accepts(fourth.APIKey) || f.accepts(third.APIKey) || !f.accepts(fifth.APIKey) {
		t.Error("without overlap only the new secret should be accepted")
	}
	sixth, err := f.keys.Rotate(t.Context(), id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.keys.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if f.accepts(fifth.APIKey) || f.accepts(sixth.APIKey) {
		t.Error("a secret of a revoked key is accepted")
	}
	if list, err := f.keys.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d keys, %v", len(list), err)
	}
	for _, overlap := range []time.Duration{-1, MaxOverlap + 1} {
		var wrong *Invalid
		if _, err := f.keys.Rotate(t.Context(), id, overlap); !errors.As(err, &wrong) || wrong.Field != FieldOverlap {
			t.Errorf("an overlap of %v: %v", overlap, err)
		}
	}
	if _, err := f.keys.Rotate(t.Context(), id, 0); !errors.Is(err, ErrNoKey) {
		t.Errorf("a revoked key: %v", err)
	}
}

func TestKeysExpire(t *testing.T) {
	f := newFixture(t, Config{})
	k := f.key(f.keys, NewKey{Name: "a", Expires: f.Now().Add(time.Hour)})
	if !f.accepts(k.APIKey) {
		t.Error("rejected before it expires")
	}
	f.pass(time.Hour)
	if f.accepts(k.APIKey) {
		t.Error("accepted after it expired")
	}
	if _, err := f.keys.Expire(t.Context(), "a", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if !f.accepts(k.APIKey) {
		t.Error("rejected although it no longer expires")
	}
	var wrong *Invalid
	if _, err := f.keys.Expire(t.Context(), "a", f.Now()); !errors.As(err, &wrong) || wrong.Field != FieldExpires {
		t.Errorf("a time in the past: %v", err)
	}
}

// An edit is applied completely or not at all.
func TestKeysAreEdited(t *testing.T) {
	f := newFixture(t, Config{})
	ends := f.Now().Add(time.Hour)
	issued := f.key(f.keys, NewKey{Name: "a", Rules: Rules{PerDay: 5}, Expires: ends})
	id := issued.Key.ID.String()
	name, rules, later := "b", Rules{PerSecond: 7}, ends.Add(time.Hour)
	long, wrong, over := strings.Repeat("n", maxName+1), Rules{Methods: []string{"?"}}, f.Now()
	for _, c := range []struct {
		edit  KeyEdit
		field Field
	}{
		{KeyEdit{Name: &long, Rules: &rules, Expires: &later}, FieldName},
		{KeyEdit{Name: &name, Rules: &wrong, Expires: &later}, FieldRules},
		{KeyEdit{Name: &name, Rules: &rules, Expires: &over}, FieldExpires},
	} {
		var invalid *Invalid
		if _, err := f.keys.Edit(t.Context(), id, c.edit); !errors.As(err, &invalid) || invalid.Field != c.field {
			t.Errorf("with a wrong %s: %v", c.field, err)
		}
		if k, err := f.keys.Find(id); err != nil || k.Name != "a" || k.Rules.PerDay != 5 || !k.Expires.Equal(ends) {
			t.Errorf("with a wrong %s it became %+v, %v", c.field, k, err)
		}
	}
	for _, c := range []struct {
		what string
		edit KeyEdit
		want Key
	}{
		{"nothing", KeyEdit{}, Key{Name: "a", Rules: &Rules{PerDay: 5}, Expires: ends}},
		{"one thing", KeyEdit{Name: &name}, Key{Name: "b", Rules: &Rules{PerDay: 5}, Expires: ends}},
		{"everything", KeyEdit{Name: new(string), Rules: &rules, Expires: &later}, Key{Rules: &Rules{PerSecond: 7}, Expires: later}},
		{"current values", KeyEdit{Rules: new(Rules), Expires: new(time.Time)}, Key{}},
	} {
		edited, err := f.keys.Edit(t.Context(), id, c.edit)
		if err != nil {
			t.Fatal(err)
		}
		f.reopen()
		k, err := f.keys.Find(id)
		if err != nil || !reflect.DeepEqual(edited, k) || k.Name != c.want.Name || !reflect.DeepEqual(k.Rules, c.want.Rules) || !k.Expires.Equal(c.want.Expires) {
			t.Errorf("%s: %+v, after opening again %+v, expected %+v, %v", c.what, edited, k, c.want, err)
		}
	}
}

func TestKeysAreGuarded(t *testing.T) {
	f := newFixture(t, Config{})
	issued := f.key(f.keys, NewKey{Name: "a"})
	if k, _ := f.keys.Check(issued.APIKey); k.Guarded || issued.Password != "" || !k.Accepts("anything") {
		t.Errorf("a key without a password: %+v", issued)
	}
	first, err := f.keys.Guard(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.keys.Guard(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	f.reopen()
	k, _ := f.keys.Check(issued.APIKey)
	if !k.Guarded || !k.Accepts(second.Password) || k.Accepts(first.Password) || k.Accepts("") || k.Accepts(issued.APIKey) {
		t.Errorf("a key with a password: %+v", k)
	}
	if _, err := f.keys.Unguard(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if k, _ := f.keys.Check(issued.APIKey); k.Guarded || !k.Accepts("") {
		t.Errorf("a key without a password again: %+v", k)
	}
}

func TestKeysOfAnAccount(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen, Keys: 2})
	ctx := t.Context()
	mine, _ := f.register(somebody, secret)
	yours, _ := f.register("other@example.org", secret)
	keys := f.keys.Of(mine.ID)
	own := f.key(keys, NewKey{Name: "own", Owner: yours.ID}) // the owner is ignored
	foreign := f.key(f.keys.Of(yours.ID), NewKey{Name: "foreign"})
	f.key(f.keys, NewKey{Name: "the operator's"})
	if own.Key.Owner != mine.ID {
		t.Errorf("the key is %s's, expected %s's", own.Key.Owner, mine.ID)
	}
	if list, err := keys.List(ctx); err != nil || len(list) != 1 || list[0].ID != own.Key.ID {
		t.Errorf("the account's keys are %+v, %v", list, err)
	}
	for _, name := range []string{foreign.Key.ID.String(), "foreign", foreign.APIKey, "the operator's"} {
		for what, do := range map[string]func() error{
			"find":     func() error { _, err := keys.Find(name); return err },
			"revoke":   func() error { _, err := keys.Revoke(ctx, name); return err },
			"rotate":   func() error { _, err := keys.Rotate(ctx, name, 0); return err },
			"restrict": func() error { _, err := keys.Restrict(ctx, name, Rules{}); return err },
			"edit":     func() error { _, err := keys.Edit(ctx, name, KeyEdit{}); return err },
			"expire":   func() error { _, err := keys.Expire(ctx, name, time.Time{}); return err },
			"guard":    func() error { _, err := keys.Guard(ctx, name); return err },
			"unguard":  func() error { _, err := keys.Unguard(ctx, name); return err },
		} {
			if err := do(); !errors.Is(err, ErrNoKey) {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}

	f.key(keys, NewKey{Name: "second"})
	if _, err := keys.Create(ctx, NewKey{Name: "third"}); !errors.Is(err, ErrTooMany) || !strings.Contains(err.Error(), "may have at once (2)") {
		t.Errorf("a key too many: %v", err)
	}
	if _, err := f.accounts.SetLimits(ctx, somebody, Limits{Keys: 3}); err != nil {
		t.Fatal(err)
	}
	f.key(keys, NewKey{Name: "third"})
	if _, err := keys.Revoke(ctx, "third"); err != nil {
		t.Fatal(err)
	}
	f.key(keys, NewKey{Name: "fourth"}) // revoked keys do not count
}

func TestDisabledAccountsKeysAreRefused(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	ctx := t.Context()
	made, session := f.register(somebody, secret)
	k := f.key(f.keys.Of(made.ID), NewKey{Name: "a"})
	if got, _ := f.keys.Check(k.APIKey); got.Account() == nil || got.Account().Email != somebody {
		t.Errorf("the owner of the key is %+v", got.Account())
	}
	if _, err := f.accounts.Disable(ctx, somebody); err != nil {
		t.Fatal(err)
	}
	if f.accepts(k.APIKey) {
		t.Error("a key of a disabled account is accepted")
	}
	if _, err := f.keys.Of(made.ID).Create(ctx, NewKey{}); !errors.Is(err, ErrDisabled) {
		t.Errorf("a new key of a disabled account: %v", err)
	}
	if _, err := f.accounts.Enable(ctx, somebody); err != nil {
		t.Fatal(err)
	}
	if !f.accepts(k.APIKey) {
		t.Error("a key of an account that was enabled again is rejected")
	}
	if _, err := f.accounts.Resume(session); !errors.Is(err, ErrSession) {
		t.Errorf("a session from before: %v", err)
	}
}

// An expired key does not count, so making it valid again needs a place like a new one.
func TestExpiredKeysNeedAPlaceAgain(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen, Keys: 2})
	ctx := t.Context()
	mine, _ := f.register(somebody, secret)
	keys := f.keys.Of(mine.ID)
	old := f.key(keys, NewKey{Name: "old", Expires: f.Now().Add(time.Hour)})
	f.key(keys, NewKey{Name: "also old", Expires: f.Now().Add(time.Hour)})
	if _, err := keys.Expire(ctx, "old", f.Now().Add(2*time.Hour)); err != nil {
		t.Errorf("a key that has its place: %v", err)
	}
	f.pass(2 * time.Hour)
	f.key(keys, NewKey{Name: "first"})
	f.key(keys, NewKey{Name: "second"})
	for _, until := range []time.Time{{}, f.Now().Add(time.Hour)} {
		if _, err := keys.Expire(ctx, "old", until); !errors.Is(err, ErrTooMany) || f.accepts(old.APIKey) {
			t.Errorf("a third key is valid until %v: %v", until, err)
		}
		keys = f.keys.Of(mine.ID)
	}
	name := "renamed"
	if _, err := keys.Edit(ctx, "old", KeyEdit{Name: &name}); err != nil {
		t.Errorf("another name of an expired key: %v", err)
	}
	if _, err := keys.Revoke(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Expire(ctx, name, time.Time{}); err != nil || !f.accepts(old.APIKey) {
		t.Errorf("with a free place: %v", err)
	}
}
