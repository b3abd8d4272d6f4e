package gateway_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/password"
	"ashlar/account/usage"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// people is a store with real accounts and keys.
type people struct {
	*testing.T
	accounts *account.Accounts
	keys     *account.Keyring
	usage    *usage.Usage

	ahead atomic.Int64 // how far the accounts' clock is ahead, in nanoseconds
}

func newPeople(t *testing.T) *people {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return openPeople(t, store)
}

func openPeople(t *testing.T, store kv.Store) *people {
	t.Helper()
	p := &people{T: t}
	var err, err2, err3 error
	p.accounts, err = account.OpenAccounts(t.Context(), store, account.Config{
		Password: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1},
		Now:      func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) },
	})
	p.keys, err2 = account.OpenKeyring(t.Context(), p.accounts)
	p.usage, err3 = usage.Open(t.Context(), store, usage.Config{})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return p
}

// account creates an account.
func (p *people) account(email string, limits account.Limits) account.ID {
	p.Helper()
	_, a, err := p.accounts.Create(p.Context(), account.NewAccount{Email: email, Limits: limits})
	if err != nil {
		p.Fatal(err)
	}
	return a.ID
}

// key creates a key.
func (p *people) key(n account.NewKey) account.Issued {
	p.Helper()
	issued, err := p.keys.Create(p.Context(), n)
	if err != nil {
		p.Fatal(err)
	}
	return issued
}

func (p *people) must(_ any, err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// with sends a request with a key and returns the status and the answer.
func (s *running) with(key, request string, headers ...string) (int, http.Header, string) {
	s.t.Helper()
	response, answer := s.ask(http.MethodPost, "/v3/"+key, request, append([]string{"Content-Type", "application/json"}, headers...)...)
	return response.StatusCode, response.Header, answer
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
