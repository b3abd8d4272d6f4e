package account

import (
	"errors"
	"testing"
)

// The stand-in for a key in calls of a signed-in user belongs to the account.
func TestSessionStandsForAKey(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	a, _ := f.register(somebody, secret)
	k, err := f.keys.Session(a.ID)
	if err != nil || k.Owner != a.ID || k.Rules != nil || k.Account() == nil || k.Account().ID != a.ID {
		t.Fatalf("%+v, %v", k, err)
	}
	if keys, err := f.keys.List(t.Context()); err != nil || len(keys) != 0 {
		t.Errorf("it is listed among the keys: %+v, %v", keys, err)
	}
	if _, err := f.accounts.Disable(t.Context(), a.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.keys.Session(a.ID); !errors.Is(err, ErrDisabled) {
		t.Errorf("of a disabled account: %v", err)
	}
	if _, err := f.keys.Session(ID{1}); !errors.Is(err, ErrNoAccount) {
		t.Errorf("of no account: %v", err)
	}
}
