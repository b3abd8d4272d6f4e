package account

import (
	"errors"
	"net/netip"
	"testing"

	"ashlar/account/oidc"
)

// at returns a user of a provider.
func at(subject, email string) oidc.Identity {
	return oidc.Identity{Issuer: "https://id.example.org", Subject: subject, Email: email, Verified: true}
}

func (f *fixture) arrive(who oidc.Identity, policy Provided) (Account, error) {
	a, session, err := f.accounts.Arrive(f.Context(), who, policy)
	if err == nil {
		_, err = f.accounts.Resume(session)
	}
	return a, err
}

// A user of a provider gets the account with the same address only if nobody else can have its
// password, and a new account only if policy says so.
func TestArrive(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	f.register("unverified@example.org", secret)
	_, made, err := f.accounts.Create(t.Context(), NewAccount{Email: "made@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	unverified := at("1", "made@example.org")
	unverified.Verified = false
	everybody := Provided{Create: true}
	for _, c := range []struct {
		name   string
		who    oidc.Identity
		policy Provided
		want   error
	}{
		{"not verified by the provider", unverified, everybody, ErrUnverified},
		{"no address", at("1", ""), everybody, ErrUnverified},
		{"a password for an unverified address", at("1", "unverified@example.org"), everybody, ErrNotLinked},
		{"no account", at("1", "new@example.org"), Provided{}, ErrNotProvided},
		{"another domain", at("1", "new@example.org"), Provided{Create: true, Domains: []string{"example.net", "ample.org"}}, ErrNotProvided},
		{"no password", at("1", "Made@example.org"), Provided{}, nil},
		{"the same user at another address", at("1", "unverified@example.org"), Provided{}, nil},
		{"another user with the address", at("2", "made@example.org"), everybody, ErrNotLinked},
		{"a new account", at("3", "new@example.org"), Provided{Create: true, Domains: []string{"example.org"}}, nil},
	} {
		if _, err := f.arrive(c.who, c.policy); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, err, c.want)
		}
		f.pass(5e9)
	}
	f.reopen()
	if a, err := f.arrive(at("1", ""), Provided{}); err != nil || a.ID != made.ID || a.Verified.IsZero() || a.Provider != "https://id.example.org" {
		t.Errorf("after a restart: %+v, %v", a, err)
	}
	other := at("1", "")
	other.Issuer = "https://other.example.org"
	if _, err := f.arrive(other, Provided{}); !errors.Is(err, ErrUnverified) {
		t.Errorf("the same subject of another issuer: %v", err)
	}
	if _, err := f.accounts.Disable(t.Context(), made.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.arrive(at("1", ""), Provided{}); !errors.Is(err, ErrDisabled) {
		t.Errorf("disabled: %v", err)
	}
}

// When the service has another provider, or its provider another URL, users keep their accounts: the first
// sign-in finds them by the verified address again.
func TestAnotherIssuer(t *testing.T) {
	f := newFixture(t, Config{})
	before, err := f.arrive(at("1", somebody), Provided{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	moved := at("7", somebody)
	moved.Issuer = "https://id.example.org/moved"
	if a, err := f.arrive(moved, Provided{}); err != nil || a.ID != before.ID || a.Provider != moved.Issuer {
		t.Errorf("%+v, %v, expected account %s", a, err, before.ID)
	}
	moved.Subject = "8"
	if _, err := f.arrive(moved, Provided{}); !errors.Is(err, ErrNotLinked) {
		t.Errorf("another user of the new issuer: %v", err)
	}
	if _, err := f.arrive(at("1", "elsewhere@example.org"), Provided{}); !errors.Is(err, ErrNotProvided) {
		t.Errorf("the old issuer: %v", err)
	}
}

// sessionOf returns a session of an account.
func sessionOf(t *testing.T, a *Accounts, id ID) Session {
	t.Helper()
	h, err := a.holder(id)
	if err != nil {
		t.Fatal(err)
	}
	return h.load().session()
}

// A session that ends while its user is at the provider connects nothing, also if another process ended it.
func TestEndedSessionsLinkNothing(t *testing.T) {
	for name, end := range map[string]func(a, other *Accounts, of Session) error{
		"here": func(a, _ *Accounts, of Session) error { _, _, err := a.EndSessions(t.Context(), of); return err },
		"another process": func(_, other *Accounts, of Session) error {
			_, _, err := other.EndSessions(t.Context(), of)
			return err
		},
	} {
		f := newFixture(t, Config{Registration: RegistrationOpen, Shared: true})
		a, before := f.register(somebody, secret)
		if err := end(f.accounts, openAccounts(t, f.store, f.config), before); err != nil {
			t.Fatal(err)
		}
		who := at("1", "elsewhere@example.net")
		if _, err := f.accounts.Link(t.Context(), before, who); !errors.Is(err, ErrSession) {
			t.Errorf("%s: a session that has ended: %v", name, err)
		}
		if _, err := f.arrive(who, Provided{}); !errors.Is(err, ErrNotProvided) {
			t.Errorf("%s: the user of the provider arrives: %v", name, err)
		}
		if linked, err := f.accounts.Link(t.Context(), sessionOf(t, f.accounts, a.ID), who); err != nil || linked.ID != a.ID {
			t.Errorf("%s: a session that goes on: %+v, %v", name, linked, err)
		}
	}
}

// A signed-in user connects a provider, which then leads to the account, and disconnects it with
// the password. A provider does not replace the second factor.
func TestLink(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationOpen})
	a, own := f.register("first@example.org", secret)
	_, other := f.register("b@example.org", secret)
	who := at("1", "elsewhere@example.net")
	if _, err := f.accounts.Link(t.Context(), own, who); err != nil {
		t.Fatal(err)
	}
	var invalid *Invalid
	if _, err := f.accounts.Link(t.Context(), other, who); !errors.As(err, &invalid) || invalid.Field != FieldIdentity {
		t.Errorf("linked twice: %v", err)
	}
	if found, err := f.arrive(who, Provided{}); err != nil || found.ID != a.ID {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := f.accounts.Unlink(t.Context(), a.ID, "not the password", netip.Addr{}); !errors.Is(err, ErrCredentials) {
		t.Errorf("a wrong password: %v", err)
	}
	if _, err := f.accounts.Unlink(t.Context(), a.ID, secret, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.arrive(who, Provided{}); !errors.Is(err, ErrNotProvided) {
		t.Errorf("disconnected: %v", err)
	}
	made, err := f.arrive(at("9", "made@example.org"), Provided{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Unlink(t.Context(), made.ID, "", netip.Addr{}); !errors.As(err, &invalid) {
		t.Errorf("without a password: %v", err)
	}
	f.pass(60e9)
	protected, _, _ := withFactor(f)
	if _, err := f.accounts.Link(t.Context(), sessionOf(t, f.accounts, protected.ID), at("10", "")); err != nil {
		t.Fatal(err)
	}
	var needed *CodeNeeded
	if _, err := f.arrive(at("10", ""), Provided{}); !errors.As(err, &needed) {
		t.Errorf("with a second factor: %v", err)
	}
}
