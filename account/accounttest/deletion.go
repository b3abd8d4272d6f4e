// Package accounttest holds the tests of stored accounts that every engine runs.
package accounttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/password"
	"ashlar/account/session"
	"ashlar/account/usage"
	"ashlar/kv"

	"github.com/alexedwards/scs/v2"
)

// process is a process that works on a store of accounts.
type process struct {
	*testing.T
	store    kv.Store
	now      *time.Time
	accounts *account.Accounts
	keys     *account.Keyring
	usage    *usage.Usage
	sessions *session.Store
	failures *failures.Log
	mailer   *mailer
}

// mailer sends no letters, but composes them at once.
type mailer struct{ last *account.Letter }

func (m *mailer) Queue(compose func(context.Context) (*account.Letter, error)) (err error) {
	m.last, err = compose(context.Background())
	return err
}

func open(t *testing.T, store kv.Store, now *time.Time) *process {
	t.Helper()
	p := &process{T: t, store: store, now: now, failures: failures.New(), mailer: new(mailer)}
	clock := func() time.Time { return *now }
	var err error
	p.accounts, err = account.OpenAccounts(t.Context(), store, account.Config{
		Registration: account.RegistrationInvited, Password: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1},
		Shared: true, Mailer: p.mailer, Now: clock,
	})
	if err == nil {
		p.keys, err = account.OpenKeyring(t.Context(), p.accounts)
	}
	if err == nil {
		p.usage, err = usage.Open(t.Context(), store, usage.Config{Keep: 5, Known: p.keys.Known, Now: clock})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.sessions = session.NewStore(store, clock)
	p.accounts.Attach(p.usage, p.sessions, p.failures)
	return p
}

const secret = "correct horse battery"

// user is an account with what its user has.
type user struct {
	account account.Account
	session account.Session
	cookie  string
	token   string // for the API
	apiKeys []string
	ids     []account.KeyID
}

// join registers a user with an invitation, who then uses everything that there is.
func (p *process) join(email string, address netip.Addr) user {
	p.Helper()
	visitor := account.WithActor(p.Context(), account.Actor{Address: address, Via: "dashboard"})
	invitation, _, err := p.accounts.Invite(p.Context(), account.NewInvitation{})
	p.need(err)
	p.need(p.accounts.RequestRegistration(visitor, account.Registrant{Email: email, Invitation: invitation, Address: address}))
	u := user{cookie: "cookie of " + email}
	u.account, u.session, err = p.accounts.Register(visitor, account.Registrant{Token: p.mailer.last.Token, Password: secret, Address: address})
	p.need(err)
	ctx := account.WithActor(p.Context(), account.Actor{Account: u.account.ID, Address: address, Via: "dashboard"})
	u.token, _, err = p.accounts.CreateToken(ctx, u.account.ID, "token of "+email, 48*time.Hour)
	p.need(err)
	p.need(p.accounts.RequestChange(ctx, u.account.ID, secret, "new-"+email, address))
	data, err := scs.GobCodec{}.Encode(*p.now, map[string]any{"account": string(u.session)})
	p.need(err)
	p.need(p.sessions.Commit(u.cookie, data, p.now.Add(time.Hour)))
	u.ids = []account.KeyID{account.KeyID(u.account.ID)} // calls of the console
	for i := range 3 {
		issued, err := p.keys.Of(u.account.ID).Create(ctx, account.NewKey{Name: fmt.Sprint("key ", i, " of ", email)})
		p.need(err)
		u.apiKeys, u.ids = append(u.apiKeys, issued.APIKey), append(u.ids, issued.Key.ID)
	}
	_, err = p.keys.Of(u.account.ID).Revoke(ctx, u.ids[3].String())
	p.need(err)
	u.apiKeys = u.apiKeys[:2]
	p.use(u)
	return u
}

func (p *process) need(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// use counts a call of each key, and flushes it.
func (p *process) use(u user) {
	p.Helper()
	for _, id := range u.ids {
		p.usage.Meter(id).Called(p.usage.Series("main", "call"), time.Millisecond, 0)
		p.failures.Add(id, failures.Failure{Method: "call"}, nil)
	}
	p.need(p.usage.Flush(p.Context()))
}

// calls returns how many calls are counted of keys, or of all.
func (p *process) calls(all bool, keys []account.KeyID) uint64 {
	p.Helper()
	lines, err := p.usage.Read(p.Context(), usage.Query{All: all, Keys: keys, From: p.now.Add(-72 * time.Hour), To: p.now.Add(time.Hour)})
	p.need(err)
	if len(lines) == 0 {
		return 0
	}
	return lines[0].Requests
}

// accepts checks that everything of a user works, or that nothing does.
func (p *process) accepts(when string, u user, want bool) {
	p.Helper()
	check := func(what string, err, refusal error) {
		p.Helper()
		if want && err != nil || !want && !errors.Is(err, refusal) {
			p.Errorf("%s, %s of %s: %v", when, what, u.account.Email, err)
		}
	}
	_, err := p.accounts.Find(u.account.ID.String())
	check("account", err, account.ErrNoAccount)
	_, _, err = p.accounts.SignIn(p.Context(), u.account.Email, secret, netip.Addr{})
	check("password", err, account.ErrCredentials)
	_, err = p.accounts.Resume(u.session)
	check("session", err, account.ErrSession)
	_, err = p.accounts.WithToken(u.token, netip.Addr{})
	check("token", err, account.ErrToken)
	for i, text := range u.apiKeys {
		if _, ok := p.keys.Check(text); ok != want {
			p.Errorf("%s, key %d of %s: accepted %t", when, i, u.account.Email, ok)
		}
	}
	listed, err := p.keys.List(p.Context())
	p.need(err)
	found := 0
	for _, k := range listed {
		if k.Owner == u.account.ID {
			found++
		}
	}
	if want != (found == len(u.ids)-1) || !want && found > 0 {
		p.Errorf("%s, %d keys of %s are listed", when, found, u.account.Email)
	}
	*p.now = p.now.Add(time.Minute) // attempts are limited
}

// holds checks whether the store has anything of a user, besides that the account is deleted.
func (p *process) holds(u user, address netip.Addr, want bool) {
	p.Helper()
	texts := [][]byte{[]byte(u.account.Email), []byte(address.String())}
	for _, id := range u.ids {
		texts = append(texts, id[:], []byte(id.String()))
	}
	found := 0
	for _, t := range append(append(account.Tables(), usage.Tables()...), session.Tables()...) {
		for row, err := range p.store.Walk(p.Context(), t, 0) {
			p.need(err)
			for i, text := range texts {
				if !bytes.Contains(append(bytes.Clone(row.Partition), row.Value...), text) {
					continue
				}
				// The account's ID is random, and tells nothing once the account is deleted.
				known := i >= 2 && (t.Name == "audit_days" || t.Name == "account_revisions" && row.Sort == ^uint64(0))
				if !want && !known {
					p.Errorf("table %s still has %q of %s, in row %d", t.Name, text, u.account.Email, row.Sort)
				}
				found++
			}
		}
	}
	if want && found < 10 {
		p.Errorf("%d texts of %s are found, so this test finds nothing", found, u.account.Email)
	}
}

var errStopped = errors.New("the process is stopped")

// stopping is the store of a process that is killed after a number of changes.
type stopping struct {
	kv.Store
	left int
}

func (s *stopping) step() error {
	s.left--
	if s.left < 0 {
		return errStopped
	}
	return nil
}

func (s *stopping) Write(ctx context.Context, b kv.Batch) error {
	return errors.Join(s.step(), s.ifGoing(func() error { return s.Store.Write(ctx, b) }))
}

func (s *stopping) Sync(ctx context.Context) error {
	return errors.Join(s.step(), s.ifGoing(func() error { return s.Store.Sync(ctx) }))
}

func (s *stopping) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	return errors.Join(s.step(), s.ifGoing(func() error { return s.Store.Drop(ctx, t, partition) }))
}

func (s *stopping) ifGoing(do func() error) error {
	if s.left < 0 {
		return nil
	}
	return do()
}

// The addresses of the two users.
var here, there = netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("198.51.100.4")

// RunDeletion tests that accounts are deleted with all that belongs to them. reopen returns a
// store, always the same, as a process finds it that is started after another was killed.
func RunDeletion(t *testing.T, reopen func(*testing.T) kv.Store) {
	now := time.Date(2026, 5, 1, 12, 5, 0, 0, time.UTC)
	p := open(t, reopen(t), &now)
	leaver, stayer := p.join("leaver@example.org", here), p.join("stayer@example.org", there)
	now = now.Add(time.Hour)
	p.use(leaver) // and adds the first hour up
	p.use(stayer)
	p.accepts("at first", leaver, true)
	p.holds(leaver, here, true)
	steps := killedEverywhere(t, reopen, &now, leaver)
	if steps < 15 {
		t.Errorf("the deletion took %d steps, so this test does not see them", steps)
	}

	p = open(t, reopen(t), &now)
	p.accepts("afterwards", leaver, false)
	p.accepts("afterwards", stayer, true)
	p.need(p.accounts.Sweep(t.Context()))
	p.holds(stayer, there, true)
	for row, err := range p.store.Walk(t.Context(), usage.Tables()[1], 0) { // hours that are added up
		p.need(err)
		if id := account.KeyID(row.Partition[:8]); slices.Contains(leaver.ids, id) {
			t.Errorf("usage of %s is kept", id)
		}
	}
	// The current hour is added up, and what it had of the leaver is dropped later.
	now = now.Add(2 * time.Hour)
	p.need(p.usage.Flush(t.Context()))
	now = now.Add(25 * time.Hour)
	p.need(p.usage.Clean(t.Context()))
	p.holds(leaver, here, false)
	if own, all := p.calls(false, stayer.ids), p.calls(true, nil); own != 8 || all != 16 {
		t.Errorf("%d calls of the other account and %d of all, expected 8 and 16", own, all)
	}

	again := p.join(leaver.account.Email, here) // the address may be used again
	p = open(t, reopen(t), &now)
	p.accepts("registered again", again, true)
	if unreadable := p.accounts.Unreadable(); len(unreadable) > 0 {
		t.Errorf("unreadable: %q", unreadable)
	}
}

// killedEverywhere deletes an account, by processes each of which is killed one step later than
// the one before. It returns how many there were.
func killedEverywhere(t *testing.T, reopen func(*testing.T) kv.Store, now *time.Time, u user) int {
	for steps := 0; ; steps++ {
		if steps > 200 {
			t.Fatal("it does not end")
		}
		p := open(t, &stopping{Store: reopen(t), left: steps}, now)
		_, err := p.accounts.Find(u.account.ID.String())
		alive := err == nil
		p.accepts(fmt.Sprint("started again after ", steps, " steps"), u, alive)
		if alive {
			_, err = p.accounts.Delete(t.Context(), u.account.Email)
		} else {
			err = p.accounts.Sweep(t.Context())
		}
		if err == nil {
			return steps
		}
		if !errors.Is(err, errStopped) {
			t.Fatalf("after %d steps: %v", steps, err)
		}
	}
}

// blind is the store of a process that cannot read whether an account was changed, and so changes
// it as it knows it.
type blind struct{ kv.Store }

func (s blind) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if t.Name == "account_revisions" {
		return dst, 0, kv.ErrUnavailable
	}
	return s.Store.Newest(ctx, t, partition, at, dst)
}

// RunDeletionBeside tests that a process follows when another one deletes an account, and that
// nothing is left of what it writes before it knows.
func RunDeletionBeside(t *testing.T, store kv.Store) {
	now := time.Date(2026, 5, 1, 12, 5, 0, 0, time.UTC)
	one := open(t, store, &now)
	var other *process
	var late account.Issued
	writes := map[string]func(user) error{
		"an account": func(u user) error {
			_, err := other.accounts.SetLimits(t.Context(), u.account.Email, account.Limits{PerDay: 7})
			return err
		},
		"a key": func(u user) error {
			_, err := other.keys.Restrict(t.Context(), u.ids[1].String(), account.Rules{PerDay: 7})
			return err
		},
		"a new key": func(u user) (err error) {
			late, err = other.keys.Of(u.account.ID).Create(t.Context(), account.NewKey{Name: "late"})
			return err
		},
	}
	for what, write := range writes {
		leaver := one.join("leaver@example.org", here)
		other = open(t, blind{store}, &now)
		other.use(leaver)
		_, err := one.accounts.Delete(t.Context(), leaver.account.Email)
		one.need(err)
		other.accepts("before it knows", leaver, true)
		one.need(write(leaver))
		for _, p := range []*process{one, other} {
			p.need(p.keys.Refresh(t.Context()))
			p.accepts("after a change of "+what, leaver, false)
			if _, ok := p.keys.Check(late.APIKey); ok {
				t.Error("a key is accepted that was created after the deletion")
			}
			p.need(p.accounts.Sweep(t.Context()))
			if len(p.failures.Last(leaver.ids[1])) > 0 {
				t.Error("failures are kept in memory")
			}
			if known := open(t, store, &now).keys.Known(); known[late.Key.ID] || known[leaver.ids[1]] {
				t.Errorf("after a change of %s, keys are left", what)
			}
		}
		now = now.Add(time.Hour)
		for _, p := range []*process{other, one} {
			p.need(p.usage.Flush(t.Context()))
		}
		one.holds(leaver, here, false)
	}
	for range 6 { // because the order of IDs is random
		_, first, err := one.accounts.Create(t.Context(), account.NewAccount{Email: "again@example.org"})
		one.need(err)
		one.need(other.keys.Refresh(t.Context()))
		_, err = one.accounts.Delete(t.Context(), first.Email)
		one.need(err)
		_, second, err := one.accounts.Create(t.Context(), account.NewAccount{Email: first.Email})
		one.need(err)
		one.need(other.keys.Refresh(t.Context()))
		if found, err := other.accounts.Find(first.Email); err != nil || found.ID != second.ID || !found.Enabled() {
			t.Errorf("the address is used again: %+v, %v", found, err)
		}
		_, err = one.accounts.Delete(t.Context(), second.Email)
		one.need(err)
	}
}
