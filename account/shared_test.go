package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestShared has two processes share a store: each sees the other's changes after Refresh,
// and of two changes at once none undoes a revocation.
func TestShared(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	refresh := func(r *Keyring) {
		t.Helper()
		if err := r.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	here, there := openShared(t, store), openShared(t, store)
	_, owner, err := here.accounts.Create(t.Context(), NewAccount{Email: "someone@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	issued, err := here.Of(owner.ID).Create(t.Context(), NewKey{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := there.Check(issued.APIKey); ok {
		t.Error("a key is known without Refresh")
	}
	refresh(there)
	if k, ok := there.Check(issued.APIKey); !ok || k.Owner != owner.ID {
		t.Errorf("a key that another process created: %+v, %t", k, ok)
	}

	if _, err := there.Revoke(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	refresh(here)
	if _, ok := here.Check(issued.APIKey); ok {
		t.Error("a key that another process revoked is accepted")
	}

	// Both change the same key, one of them without its newest row, again and again, because the
	// order of the two revisions is random.
	for range 8 {
		text, key := create(t, here, "")
		refresh(there)
		stale := openShared(t, unreachable{store})
		if _, err := here.Revoke(t.Context(), key.ID.String()); err != nil {
			t.Fatal(err)
		}
		if _, err := stale.Restrict(t.Context(), key.ID.String(), Rules{Methods: []string{"eth_call"}}); err != nil {
			t.Fatal(err)
		}
		refresh(here)
		refresh(there)
		refresh(stale)
		for _, r := range []*Keyring{here, there, stale, openShared(t, store)} {
			if _, ok := r.Check(text); ok {
				t.Error("a revoked key is accepted after a change at the same time")
			}
		}
	}

	if _, err := there.accounts.Disable(t.Context(), owner.Email); err != nil {
		t.Fatal(err)
	}
	refresh(here)
	if found, err := here.accounts.Find(owner.Email); err != nil || found.Enabled() {
		t.Errorf("an account that another process disabled: %+v, %v", found, err)
	}
	_, invitation, err := there.accounts.Invite(t.Context(), NewInvitation{})
	if err != nil {
		t.Fatal(err)
	}
	refresh(here)
	if all, err := here.accounts.Invitations(t.Context()); err != nil || len(all) != 1 || all[0].ID != invitation.ID {
		t.Errorf("invitations %+v, %v, expected the one of the other process", all, err)
	}
}

// refresh reads what other processes have changed.
func refresh(t *testing.T, accounts *Accounts) {
	t.Helper()
	changes, err := accounts.rows.changes(t.Context())
	if err == nil {
		err = accounts.refresh(t.Context(), changes, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An account that others have created and deleted is known before it can be swept.
func TestSweepDuringRefresh(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here, there := openAccounts(t, store, Config{Shared: true}), openAccounts(t, store, Config{Shared: true})
	_, a, err := here.Create(t.Context(), NewAccount{Email: somebody})
	if err != nil {
		t.Fatal(err)
	}
	b := store.NewBatch()
	b.Put(accountRevisions, a.ID[:], lastRevision, []byte("a newer form"))
	if err := store.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	defer slog.SetDefault(slog.Default())
	logged := &sweeper{Handler: slog.DiscardHandler, accounts: there}
	slog.SetDefault(slog.New(logged))
	refresh(t, there)
	if !logged.swept {
		t.Error("the row is readable")
	}
}

// sweeper sweeps when something is logged.
type sweeper struct {
	slog.Handler
	accounts *Accounts
	swept    bool
}

func (s *sweeper) Enabled(context.Context, slog.Level) bool { return true }

func (s *sweeper) Handle(ctx context.Context, _ slog.Record) error {
	s.swept = true
	return s.accounts.Sweep(ctx)
}

// unreachable is a store that does not answer reads of newest rows.
type unreachable struct{ kv.Store }

func (unreachable) Newest(_ context.Context, _ *kv.Table, _ []byte, _ uint64, dst []byte) ([]byte, uint64, error) {
	return dst, 0, kv.ErrUnavailable
}

// If the newest row of an account cannot be read, restrictions take effect, and nothing else does.
func TestChangeWithoutNewestRow(t *testing.T) {
	accounts := openAccounts(t, unreachable{openStore(t, vfs.NewMem())}, Config{Shared: true})
	_, a, err := accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err != nil {
		t.Fatal(err)
	}
	if a, err = accounts.Disable(t.Context(), somebody); err != nil || a.Enabled() {
		t.Errorf("disable: %+v, %v", a, err)
	}
	if _, err := accounts.Enable(t.Context(), somebody); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("enable: %v", err)
	}
	if a, err = accounts.Find(somebody); err != nil || a.Enabled() {
		t.Errorf("disabled: %+v, %v", a, err)
	}
}

// slow is a store in which time passes between the read of a newest row and what is written after it.
type slow struct{ kv.Store }

func (s slow) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	value, sort, err := s.Store.Newest(ctx, t, partition, at, dst)
	time.Sleep(time.Millisecond)
	return value, sort, err
}

// Two processes change one account again and again. No change is lost, also after a process has ended in the middle
// of one.
func TestChangesOfTwoProcesses(t *testing.T) {
	const each = 20
	store := slow{openStore(t, vfs.NewMem())}
	here := openAccounts(t, store, Config{Shared: true})
	_, a, err := here.Create(t.Context(), NewAccount{Email: somebody})
	if err != nil {
		t.Fatal(err)
	}
	there := openAccounts(t, store, Config{Shared: true})
	if _, err := here.rows.lock(t.Context(), onceDurable); err != nil { // and never unlocked
		t.Fatal(err)
	}
	var changing sync.WaitGroup
	for _, accounts := range []*Accounts{here, there} {
		changing.Go(func() {
			for range each {
				if _, err := accounts.change(t.Context(), a.ID.String(), "change", onceDurable, func(p *person) error { p.epoch++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Wait()
	p, err := here.latest(t.Context(), onceDurable, a.ID.String())
	if err != nil || p.epoch != 2*each {
		t.Errorf("%d changes are left, %v, want %d", p.epoch, err, 2*each)
	}
}

// createWithPassword creates an account whose password is secret.
func createWithPassword(t *testing.T, accounts *Accounts, email string) Account {
	t.Helper()
	token, a, err := accounts.Create(t.Context(), NewAccount{Email: email})
	if err == nil {
		_, _, err = accounts.SetPassword(t.Context(), token, secret, netip.Addr{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An account has the address that another one had before. Another process that learns of both changes at
// once disables neither.
func TestAddressOfAnotherBefore(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	sent := new(outbox)
	config := Config{Shared: true, Mailer: sent}
	here := openAccounts(t, store, config)
	if _, err := OpenKeyring(t.Context(), here); err != nil { // which deleting an account needs
		t.Fatal(err)
	}
	for i := range 8 { // the order of the accounts is random
		first := createWithPassword(t, here, somebody)
		there := openAccounts(t, store, config)
		if err := here.RequestChange(t.Context(), first.ID, secret, fmt.Sprintf("%d@example.org", i), where(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := here.ConfirmChange(t.Context(), sent.next(t).Token, where(i)); err != nil {
			t.Fatal(err)
		}
		sent.next(t) // which notifies the old address
		second := createWithPassword(t, here, somebody)
		refresh(t, there)
		if a, err := there.Find(somebody); err != nil || a.ID != second.ID || !a.Enabled() {
			t.Errorf("the account with the address is %+v, %v", a, err)
		}
		if bad := there.Unreadable(); len(bad) > 0 {
			t.Errorf("disabled: %q", bad)
		}
		if _, err := here.Delete(t.Context(), second.ID.String()); err != nil {
			t.Fatal(err)
		}
	}
}

// A provider's user has another account than before. Another process that learns of both changes at once finds it.
func TestIdentityOfAnotherBefore(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here := openAccounts(t, store, Config{Shared: true})
	for i := range 8 { // the order of the accounts is random
		first, second := createWithPassword(t, here, fmt.Sprintf("a%d@example.org", i)), createWithPassword(t, here, fmt.Sprintf("b%d@example.org", i))
		who := at(fmt.Sprint(i), "")
		if _, err := here.Link(t.Context(), sessionOf(t, here, first.ID), who); err != nil {
			t.Fatal(err)
		}
		there := openAccounts(t, store, Config{Shared: true})
		if _, err := here.Unlink(t.Context(), first.ID, secret, where(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Link(t.Context(), sessionOf(t, here, second.ID), who); err != nil {
			t.Fatal(err)
		}
		refresh(t, there)
		if a, _, err := there.Arrive(t.Context(), who, Provided{}); err != nil || a.ID != second.ID {
			t.Errorf("the account of the user is %s, %v, expected %s", a.ID, err, second.ID)
		}
	}
}

// An account cannot get an address that another process has just given to a new account.
func TestChangeOfAddressAtTwoProcesses(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	sent := new(outbox)
	config := Config{Shared: true, Mailer: sent}
	here := openAccounts(t, store, config)
	token, a, err := here.Create(t.Context(), NewAccount{Email: somebody})
	if err == nil {
		_, _, err = here.SetPassword(t.Context(), token, secret, netip.Addr{})
	}
	if err == nil {
		err = here.RequestChange(t.Context(), a.ID, secret, "new@example.org", where(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	letter := sent.next(t)
	there := openAccounts(t, store, config)
	if _, _, err := there.Create(t.Context(), NewAccount{Email: "new@example.org"}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.ConfirmChange(t.Context(), letter.Token, where(1)); !errors.Is(err, ErrNoLetter) {
		t.Errorf("the address of a new account at another process: %v", err)
	}
	if bad := openAccounts(t, store, config).Unreadable(); len(bad) > 0 {
		t.Errorf("disabled: %q", bad)
	}
}

// An invitation to a team admits one member, also if two use it at two processes.
func TestJoinAtTwoProcesses(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	config := Config{Shared: true, Registration: RegistrationInvited, Teams: DefaultTeams}
	here := openAccounts(t, store, config)
	var people []ID
	for _, email := range []string{"owner@example.org", "first@example.org", "second@example.org"} {
		_, a, err := here.Create(t.Context(), NewAccount{Email: email})
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, a.ID)
	}
	team, err := here.CreateTeam(t.Context(), "stone", people[0])
	if err != nil {
		t.Fatal(err)
	}
	invite := func() string {
		t.Helper()
		token, _, err := here.Invite(t.Context(), NewInvitation{Team: team.ID, TeamRole: TeamMember})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	joined, registered := invite(), invite()
	there := openAccounts(t, store, config)
	if _, err := there.Join(t.Context(), joined, people[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := there.RenameTeam(t.Context(), team.ID, "granite"); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Join(t.Context(), joined, people[2]); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("an invitation that was used at another process: %v", err)
	}
	if _, _, err := there.Register(t.Context(), Registrant{Email: somebody, Password: secret, Invitation: registered, Address: where(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Join(t.Context(), registered, people[2]); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("an invitation with which another process has created an account: %v", err)
	}
	if members, err := here.Members(t.Context(), team.ID); err != nil || len(members) != 3 {
		t.Errorf("%d members, %v, expected 3", len(members), err)
	}
}

// Two processes get the same invitation, or the same address, at once: only one creates an account.
func TestRegistrationAtTwoProcesses(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	config := Config{Shared: true, Registration: RegistrationInvited}
	here := openAccounts(t, store, config)
	invite := func() string {
		token, _, err := here.Invite(t.Context(), NewInvitation{})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	once, first, second := invite(), invite(), invite()
	there := openAccounts(t, store, config)
	register := func(a *Accounts, email, invitation string) error {
		_, _, err := a.Register(t.Context(), Registrant{Email: email, Password: secret, Invitation: invitation, Address: where(1)})
		return err
	}
	if err := register(here, "a@example.org", once); err != nil {
		t.Fatal(err)
	}
	if err := register(there, "b@example.org", once); !errors.Is(err, ErrNoInvitation) {
		t.Errorf("an invitation was used at another process: %v", err)
	}
	if err := register(here, "c@example.org", first); err != nil {
		t.Fatal(err)
	}
	var wrong *Invalid
	if err := register(there, "c@example.org", second); !errors.As(err, &wrong) || wrong.Field != FieldEmail {
		t.Errorf("an address was registered at another process: %v", err)
	}
	if _, _, err := there.Create(t.Context(), NewAccount{Email: "a@example.org"}); !errors.As(err, &wrong) {
		t.Errorf("an account with an address that another process has registered: %v", err)
	}
	again := openAccounts(t, store, config)
	if all, err := again.List(t.Context()); err != nil || len(all) != 2 || len(again.Unreadable()) > 0 {
		t.Errorf("%d accounts, %v, unreadable %q", len(all), err, again.Unreadable())
	}
}
