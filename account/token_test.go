package account

import (
	"errors"
	"net/netip"
	"testing"
	"time"
)

// A token stands for its account until it expires, is revoked, or the account is disabled.
// The store holds its hash only.
func TestTokens(t *testing.T) {
	f := newFixture(t, Config{})
	_, a, err := f.accounts.Create(f.Context(), NewAccount{Email: "a@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	text, made, err := f.accounts.CreateToken(f.Context(), a.ID, "CI", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) bool {
		t.Helper()
		owner, err := f.accounts.WithToken(text, netip.Addr{})
		if err != nil && !errors.Is(err, ErrToken) {
			t.Fatal(err)
		}
		return err == nil && owner.ID == a.ID
	}
	f.reopen()
	if !valid(text) {
		t.Fatal("a new token is refused")
	}
	for _, wrong := range []string{"", text[1:], text[:len(text)-1], text[:len(text)-1] + "g", tokenPrefix + ID{1}.String() + text[len(tokenPrefix)+16:], text[:len(tokenPrefix)+16] + newSecret()} {
		if valid(wrong) {
			t.Errorf("%q is accepted", wrong)
		}
	}
	if _, err := f.accounts.Disable(f.Context(), a.ID.String()); err != nil {
		t.Fatal(err)
	}
	if valid(text) {
		t.Error("a disabled account's token is accepted")
	}
	if _, err := f.accounts.Enable(f.Context(), a.ID.String()); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Hour)
	if all, _ := f.accounts.Tokens(a.ID); valid(text) || len(all) != 0 {
		t.Error("an expired token is accepted or listed")
	}
	f.pass(-time.Minute)
	if all, _ := f.accounts.Tokens(a.ID); !valid(text) || len(all) != 1 || all[0] != made {
		t.Errorf("tokens %+v, expected %+v", all, made)
	}
	if _, err := f.accounts.RevokeToken(f.Context(), a.ID, made.ID); err != nil || valid(text) {
		t.Errorf("a revoked token is accepted, %v", err)
	}
	for range maxTokens {
		if _, _, err := f.accounts.CreateToken(f.Context(), a.ID, "more", time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := f.accounts.CreateToken(f.Context(), a.ID, "more", time.Hour); !errors.Is(err, ErrTooMany) {
		t.Errorf("one token too many: %v", err)
	}
	f.pass(time.Hour)
	if _, _, err := f.accounts.CreateToken(f.Context(), a.ID, "more", time.Hour); err != nil {
		t.Errorf("after the others have expired: %v", err)
	}
	var wrong *Invalid
	if _, _, err := f.accounts.CreateToken(f.Context(), a.ID, "", time.Hour); !errors.As(err, &wrong) {
		t.Errorf("without a name: %v", err)
	}
}

// Guessing tokens is slowed down; valid ones are not affected.
func TestTokenGuesses(t *testing.T) {
	f := newFixture(t, Config{})
	_, a, err := f.accounts.Create(f.Context(), NewAccount{Email: "a@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := f.accounts.CreateToken(f.Context(), a.ID, "CI", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var soon *TooSoon
	for range addressBurst + 1 {
		_, err = f.accounts.WithToken("nonsense", where(1))
	}
	if !errors.As(err, &soon) {
		t.Errorf("after %d guesses: %v", addressBurst+1, err)
	}
	if _, err := f.accounts.WithToken(text, where(1)); err != nil {
		t.Errorf("a valid token: %v", err)
	}
}
