package account

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A user owns as many teams as one may, also when the teams are created, joined and given at two processes of which neither has
// read what the other has changed.
func TestLimitOfTeamsAtTwoProcesses(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	processes := func() (here, there *Accounts) {
		return openAccounts(t, store, Config{Shared: true, Teams: 1}), openAccounts(t, store, Config{Shared: true, Teams: 1})
	}
	ctx := t.Context()
	here, _ := processes()
	account := func(email string) Account {
		t.Helper()
		_, a, err := here.Create(ctx, NewAccount{Email: email})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, second := account(somebody), account("second@example.org")
	here, there := processes()
	team, err := here.CreateTeam(as(ctx, first), "stone", first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.CreateTeam(as(ctx, first), "granite", first.ID); !errors.Is(err, ErrTooMany) {
		t.Errorf("a second team, created at the other process: %v", err)
	}
	if _, err := here.AddMember(as(ctx, first), team.ID, second.Email, TeamViewer); err != nil {
		t.Fatal(err)
	}
	here, there = processes()
	if _, err := there.CreateTeam(as(ctx, second), "marble", second.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := here.SetMemberRole(as(ctx, first), team.ID, second.ID, TeamOwner); !errors.Is(err, ErrTooMany) {
		t.Errorf("the owner of a team of the other process is made an owner: %v", err)
	}
	if _, err := here.RemoveMember(as(ctx, first), team.ID, second.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := here.AddMember(as(ctx, first), team.ID, second.Email, TeamOwner); !errors.Is(err, ErrTooMany) {
		t.Errorf("the owner of a team of the other process is added as an owner: %v", err)
	}
}

// A team more than a user may own is refused without the lock for which all other changes wait.
func TestRefusedTeamsAreCheap(t *testing.T) {
	store := &locked{Store: openStore(t, vfs.NewMem())}
	a := openAccounts(t, store, Config{Shared: true, Teams: 1})
	_, user, err := a.Create(t.Context(), NewAccount{Email: somebody})
	if err == nil {
		_, err = a.CreateTeam(as(t.Context(), user), "stone", user.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := store.times.Load()
	if _, err := a.CreateTeam(as(t.Context(), user), "granite", user.ID); !errors.Is(err, ErrTooMany) {
		t.Errorf("a second team: %v", err)
	}
	if n := store.times.Load() - before; n != 0 {
		t.Errorf("the lock was taken %d times to refuse a team", n)
	}
}

// walked counts how often all rows of a table were read while the lock of changes was held.
type walked struct {
	kv.Store
	held  atomic.Bool
	times atomic.Int64
}

func (w *walked) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	err := w.Store.CompareAndSet(ctx, name, old, value)
	if err == nil && name == pointerChanging {
		w.held.Store(!slices.Equal(value, unlocked))
	}
	return err
}

func (w *walked) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	if w.held.Load() {
		w.times.Add(1)
	}
	return w.Store.Walk(ctx, t, from)
}

// The changes of other processes are read before the lock of changes is taken: all other changes wait for that lock.
func TestNewOwnersAreCounted(t *testing.T) {
	store := &walked{Store: openStore(t, vfs.NewMem())}
	config := Config{Shared: true, Teams: 3}
	here, there := openAccounts(t, store, config), openAccounts(t, store, config)
	create := func(a *Accounts, email string) Account {
		t.Helper()
		_, created, err := a.Create(t.Context(), NewAccount{Email: email})
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	first, second, third := create(here, somebody), create(here, "second@example.org"), create(here, "third@example.org")
	team, err := here.CreateTeam(as(t.Context(), first), "stone", first.ID)
	if err == nil {
		_, err = here.AddMember(as(t.Context(), first), team.ID, second.Email, TeamViewer)
	}
	if err != nil {
		t.Fatal(err)
	}
	create(there, "fourth@example.org")
	store.times.Store(0)
	if _, err := here.SetMemberRole(as(t.Context(), first), team.ID, second.ID, TeamOwner); err != nil {
		t.Fatal(err)
	}
	if n := store.times.Load(); n != 0 {
		t.Errorf("%d tables were read under the lock to make a member an owner", n)
	}
	create(there, "fifth@example.org")
	store.times.Store(0)
	if _, err := here.AddMember(as(t.Context(), first), team.ID, third.Email, TeamOwner); err != nil {
		t.Fatal(err)
	}
	if n := store.times.Load(); n != 0 {
		t.Errorf("%d tables were read under the lock to add an owner", n)
	}
}
