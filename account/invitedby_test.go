package account

import (
	"errors"
	"testing"
	"time"
)

// Invitations of an operator end when the operator may not invite any more.
func TestInvitationsEndWithTheirOperator(t *testing.T) {
	for name, end := range map[string]func(f *fixture, id string) error{
		"disabled": func(f *fixture, id string) error { _, err := f.accounts.Disable(f.Context(), id); return err },
		"a user":   func(f *fixture, id string) error { _, err := f.accounts.SetRole(f.Context(), id, RoleUser); return err },
		"deleted":  func(f *fixture, id string) error { _, err := f.accounts.Delete(f.Context(), id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Config{Registration: RegistrationInvited})
			ctx := t.Context()
			_, boss, err := f.accounts.Create(ctx, NewAccount{Email: "boss@example.org", Role: RoleOperator})
			if err != nil {
				t.Fatal(err)
			}
			_, other, err := f.accounts.Create(ctx, NewAccount{Email: "other@example.org", Role: RoleOperator})
			if err != nil {
				t.Fatal(err)
			}
			var tokens []string
			for _, by := range []ID{boss.ID, other.ID, {}} {
				token, _, err := f.accounts.Invite(ctx, NewInvitation{Role: RoleOperator, By: by, Valid: 24 * time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				tokens = append(tokens, token)
			}
			if err := end(f, boss.ID.String()); err != nil {
				t.Fatal(err)
			}
			f.reopen()
			if a, _, err := f.accounts.Register(ctx, Registrant{Email: "back@example.org", Password: secret, Invitation: tokens[0], Address: where(1)}); !errors.Is(err, ErrNoInvitation) {
				t.Errorf("an account with the role %q was created: %v", a.Role, err)
			}
			for n, token := range tokens[1:] {
				if _, _, err := f.accounts.Register(ctx, Registrant{Email: []string{"x@example.org", "y@example.org"}[n], Password: secret, Invitation: token, Address: where(2)}); err != nil {
					t.Errorf("an invitation of another operator or of the shell: %v", err)
				}
			}
		})
	}
}
