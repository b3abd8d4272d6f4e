package control

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/password"
	"ashlar/account/usage"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func openService(t *testing.T) (Service, *account.Keyring) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "keys", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	accounts, err := account.OpenAccounts(context.Background(), store, account.Config{Password: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := account.OpenKeyring(context.Background(), accounts)
	if err != nil {
		t.Fatal(err)
	}
	used, err := usage.Open(context.Background(), store, usage.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return Service{keys, accounts, used, func(context.Context) (string, error) { return "https://dash.example.org", nil }}, keys
}

type status struct {
	Networks []string `json:"networks"`
}

// serve runs a server in dir. stop stops it and waits for its end.
func serve(t *testing.T, dir string, service Service) (stop func()) {
	t.Helper()
	return serveProcess(t, dir, service, Process{
		Status: func(context.Context) (any, error) { return status{[]string{"demo"}}, nil },
	})
}

func serveProcess(t *testing.T, dir string, service Service, process Process) (stop func()) {
	t.Helper()
	s, err := Listen(dir, service, process)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func dial(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := Dial(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// shortDir returns a directory whose path is short enough for a socket, unlike perhaps that of
// t.TempDir.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestKeysThroughTheSocket(t *testing.T) {
	ctx, dir := context.Background(), shortDir(t)
	service, keys := openService(t)
	defer serve(t, dir, service)()
	client := dial(t, dir)
	c := client.Service().Keys

	issued, err := c.Create(ctx, account.NewKey{Name: "a name"})
	secret, k := issued.APIKey, issued.Key
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := keys.Check(secret); !ok || got.ID != k.ID {
		t.Errorf("the server does not know the new key: %v, %t", got, ok)
	}
	if list, err := c.List(ctx); err != nil || len(list) != 1 || list[0] != k || k.Name != "a name" {
		t.Errorf("list %+v, %v; expected %+v", list, err, k)
	}
	revoked, err := c.Revoke(ctx, "a name")
	if err != nil || revoked.Live() || revoked.ID != k.ID {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	if _, ok := keys.Check(secret); ok {
		t.Error("the server still accepts the key")
	}
	var s status
	if err := client.Status(ctx, &s); err != nil || len(s.Networks) != 1 || s.Networks[0] != "demo" {
		t.Errorf("status %+v, %v", s, err)
	}
}

// Operations through the socket have the same results as direct ones.
func TestOperationsThroughTheSocket(t *testing.T) {
	ctx, dir := t.Context(), shortDir(t)
	service, keyring := openService(t)
	defer serve(t, dir, service)()
	c := dial(t, dir).Service()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	token, made, err := c.Accounts.Create(ctx, account.NewAccount{Email: "a@example.org", Role: account.RoleOperator})
	must(err)
	if len(token) != 48 || made.Role != account.RoleOperator {
		t.Errorf("%q, %+v", token, made)
	}
	_, until, err := c.Accounts.Reset(ctx, "a@example.org")
	must(err)
	if time.Until(until) <= 0 {
		t.Errorf("a reset until %v", until)
	}
	_, err = c.Accounts.Disable(ctx, made.ID.String())
	must(err)
	_, err = c.Accounts.Enable(ctx, "a@example.org")
	must(err)
	if _, err := c.Accounts.ResetFactor(ctx, "a@example.org"); err == nil || !strings.Contains(err.Error(), "no second factor") {
		t.Errorf("reset of the second factor that the account does not have: %v", err)
	}
	_, err = c.Accounts.SetRole(ctx, "a@example.org", account.RoleUser)
	must(err)
	_, err = c.Accounts.SetLimits(ctx, "a@example.org", account.Limits{PerDay: 5})
	must(err)
	here, err := c.Accounts.List(ctx)
	must(err)
	if there, err := service.Accounts.List(ctx); err != nil || !slices.Equal(here, there) || here[0].Limits.PerDay != 5 || here[0].Role != account.RoleUser || !here[0].Enabled() {
		t.Errorf("accounts %+v; the server says %+v", here, there)
	}
	_, invitation, err := c.Accounts.Invite(ctx, account.NewInvitation{Email: "b@example.org"})
	must(err)
	_, err = c.Accounts.Withdraw(ctx, invitation.ID)
	must(err)
	if list, err := c.Accounts.Invitations(ctx); err != nil || len(list) != 1 || list[0].Withdrawn.IsZero() {
		t.Errorf("invitations %+v, %v", list, err)
	}

	issued, err := c.Keys.Create(ctx, account.NewKey{Owner: made.ID, Guarded: true, Rules: account.Rules{PerDay: 7}})
	must(err)
	id := issued.Key.ID.String()
	rotated, err := c.Keys.Rotate(ctx, id, time.Hour)
	must(err)
	guarded, err := c.Keys.Guard(ctx, id)
	must(err)
	if k, ok := keyring.Check(issued.APIKey); !ok || !k.Accepts(guarded.Password) || k.Accepts(issued.Password) {
		t.Errorf("the server has %+v", k)
	}
	_, err = c.Keys.Unguard(ctx, id)
	must(err)
	_, err = c.Keys.Expire(ctx, id, time.Now().Add(time.Hour))
	must(err)
	k, err := c.Keys.Restrict(ctx, id, account.Rules{Networks: []string{"demo"}})
	must(err)
	if got, ok := keyring.Check(rotated.APIKey); !ok || got.Guarded || got.Expires.IsZero() || !got.Rules.AllowsNetwork("demo") || !k.Expires.Equal(got.Expires) {
		t.Errorf("the server has %+v", got)
	}
	if lines, err := c.Usage.Read(ctx, usage.Query{Keys: []account.KeyID{k.ID}, To: time.Now()}); err != nil || len(lines) != 0 {
		t.Errorf("usage %+v, %v", lines, err)
	}
	if last, err := c.Usage.LastUsed(ctx, k.ID); err != nil || !last.IsZero() {
		t.Errorf("last used %v, %v", last, err)
	}
	many := make([]account.KeyID, 10_000)
	for i := range many {
		binary.BigEndian.PutUint64(many[i][:], uint64(i))
	}
	if lines, err := c.Usage.Read(ctx, usage.Query{Keys: many, From: time.Now(), To: time.Now()}); err != nil || len(lines) != 0 {
		t.Errorf("usage of many keys: %d lines, %v", len(lines), err)
	}
	_, err = c.Accounts.Delete(ctx, "a@example.org")
	must(err)
	if there, err := service.Accounts.List(ctx); err != nil || len(there) != 0 {
		t.Errorf("accounts %+v, %v after the only one was deleted", there, err)
	}
}

func TestErrorsKeepTheirKindAndText(t *testing.T) {
	ctx, dir := context.Background(), shortDir(t)
	service, keys := openService(t)
	defer serve(t, dir, service)()
	c := dial(t, dir).Service().Keys
	for range 2 {
		if _, err := c.Create(ctx, account.NewKey{Name: "twice"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, kind := range map[string]error{"twice": account.ErrAmbiguous, "nobody": account.ErrNoKey} {
		_, there := keys.Revoke(ctx, name)
		_, here := c.Revoke(ctx, name)
		if !errors.Is(here, kind) || here.Error() != there.Error() {
			t.Errorf("%q: %v; the server returned: %v", name, here, there)
		}
	}
	if _, err := c.Create(ctx, account.NewKey{Name: "a\nb"}); err == nil || !strings.Contains(err.Error(), "expected printable") {
		t.Errorf("a bad name: %v", err)
	}
}

// TestKindsAreTold: each kind of error is that kind at the client, and no other one.
func TestKindsAreTold(t *testing.T) {
	all := []error{
		account.ErrNoKey, account.ErrAmbiguous, account.ErrNoAccount, account.ErrNoInvitation, account.ErrDisabled, account.ErrTooMany,
		account.ErrUnreadable, account.ErrLastOperator, account.ErrLastOwner, account.ErrNoTeam, account.ErrTeam, ErrNotServed,
	}
	for _, kind := range all {
		answer := httptest.NewRecorder()
		write(answer, nil, fmt.Errorf("a name: %w", kind))
		err := refusal(answer.Result())
		for _, other := range all {
			if errors.Is(err, other) != (other == kind) {
				t.Errorf("%q is %q at the client: %t", kind, other, other != kind)
			}
		}
		if err.Error() != "a name: "+kind.Error() {
			t.Errorf("%q: %v", kind, err)
		}
	}
}
