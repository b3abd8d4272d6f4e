package account

import (
	"errors"
	"net/netip"
	"testing"
	"time"
)

// The token of a server without an operator creates one, once, until it expires.
func TestFirstOperator(t *testing.T) {
	f := newFixture(t, Config{Registration: RegistrationClosed})
	a := f.accounts
	if a.AwaitsFirst() {
		t.Error("an operator is awaited before there is a token")
	}
	first, _, _ := a.AllowFirst()
	token, until, ok := a.AllowFirst()
	if !ok || !until.Equal(f.Now().Add(FirstTime)) || !a.AwaitsFirst() {
		t.Fatalf("token until %v, %t", until, ok)
	}
	for name, wrong := range map[string]string{"none": "", "short": token[1:], "made up": newSecret(), "replaced": first} {
		if _, _, err := a.CreateFirst(t.Context(), wrong, "a@example.org", "a stone on a stone", netip.Addr{}); !errors.Is(err, ErrReset) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.pass(FirstTime)
	if err := a.First(token); !errors.Is(err, ErrReset) || a.AwaitsFirst() {
		t.Errorf("expired: %v", err)
	}
	f.pass(-time.Second)
	var wrong *Invalid
	if _, _, err := a.CreateFirst(t.Context(), token, "a@example.org", "short", netip.Addr{}); !errors.As(err, &wrong) || wrong.Field != FieldPassword {
		t.Errorf("a short password: %v", err)
	}
	made, session, err := a.CreateFirst(t.Context(), token, "A@example.org", "a stone on a stone", netip.Addr{})
	if err != nil || made.Role != RoleOperator || made.Email != "a@example.org" {
		t.Fatalf("%+v, %v", made, err)
	}
	if known, err := a.Resume(session); err != nil || known.ID != made.ID {
		t.Errorf("the session is of %+v, %v", known, err)
	}
	if _, _, err := a.CreateFirst(t.Context(), token, "b@example.org", "a stone on a stone", netip.Addr{}); !errors.Is(err, ErrReset) {
		t.Errorf("used again: %v", err)
	}
	if _, _, ok := a.AllowFirst(); ok || a.AwaitsFirst() {
		t.Error("a token for a second operator")
	}
}

// A token is useless as soon as an operator was created in another way, and the last
// operator's account keeps a new one from being made even if it is disabled.
func TestNoFirstOperatorBesideAnother(t *testing.T) {
	a := newFixture(t, Config{}).accounts
	token, _, _ := a.AllowFirst()
	_, made, err := a.Create(t.Context(), NewAccount{Email: "a@example.org", Role: RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.First(token); !errors.Is(err, ErrReset) {
		t.Errorf("beside another operator: %v", err)
	}
	if _, err := a.Disable(t.Context(), made.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := a.AllowFirst(); ok {
		t.Error("a token beside a disabled operator")
	}
}
