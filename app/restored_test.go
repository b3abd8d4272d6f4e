package app

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/app/config"
	"ashlar/kv/pebble"
)

// What an account has spent today is known after a start: with its keys, also with one that cannot be read now,
// and without a key; also if the account was disabled then.
func TestSpentBeforeStart(t *testing.T) {
	if now := time.Now().UTC(); now.Add(time.Minute).Day() != now.Day() {
		time.Sleep(time.Minute) // another day begins at midnight
	}
	data, ctx := t.TempDir(), t.Context()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen, c.Limits.AccountDaily = data, "127.0.0.1:0", 1000
	open := func() (s *Service, end func()) {
		t.Helper()
		s, err := Open(ctx, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s, func() {
			t.Helper()
			if err := errors.Join(s.Stop(ctx), s.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	s, end := open()
	_, user, err := s.accounts.Create(ctx, account.NewAccount{Email: "somebody@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) account.Issued {
		t.Helper()
		issued, err := s.keys.Of(user.ID).Create(ctx, account.NewKey{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return issued
	}
	whole, broken := create("whole"), create("broken")
	for id, credits := range map[account.KeyID]int{whole.Key.ID: 300, broken.Key.ID: 200, account.KeyID(user.ID): 400} {
		s.usage.Meter(id).Spent(s.usage.Series("small", "eth_call"), credits)
	}
	if err := s.usage.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.accounts.Disable(ctx, user.Email); err != nil {
		t.Fatal(err)
	}
	end()

	accounts, err := pebble.Open(pebble.Options{Path: filepath.Join(data, "accounts")})
	if err != nil {
		t.Fatal(err)
	}
	b, partition := accounts.NewBatch(), sha256.Sum256([]byte(broken.APIKey))
	b.Put(account.Tables()[0], partition[:], 1, fmt.Appendf(nil, "\x01"+`{"owner": "%s", "newer": true}`, user.ID))
	if err := errors.Join(accounts.Write(ctx, b), accounts.Close()); err != nil {
		t.Fatal(err)
	}

	s, end = open()
	defer end()
	if unreadable := s.accounts.Unreadable(); len(unreadable) != 1 {
		t.Errorf("unreadable: %q, expected one key", unreadable)
	}
	if _, err := s.accounts.Enable(ctx, user.Email); err != nil {
		t.Fatal(err)
	}
	k, err := s.keys.Find(whole.Key.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	if a := s.handler.Allowance(&k); len(a.PerDay) != 1 || a.PerDay[0].Used != 900 {
		t.Errorf("the account's quota is %+v, expected 900 credits used", a.PerDay)
	}
}
