package account

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A command may end after the write of a change has failed, and announces nothing. What it has changed is read by servers
// all the same, a little later.
func TestChangeOfAProcessThatEnded(t *testing.T) {
	for how := range kvtest.Outcomes {
		t.Run(how.String(), func(t *testing.T) {
			store := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
			server := openShared(t, store.Store)
			issued, err := server.Create(t.Context(), NewKey{Name: "leaked"})
			if err != nil {
				t.Fatal(err)
			}
			command := openShared(t, store)
			store.Fail, store.How = 1, how
			if _, err := command.Revoke(t.Context(), "leaked"); !errors.Is(err, kvtest.ErrDoubtful) {
				t.Fatal(err)
			}
			// The operator tries again, and may hear that there is no such key any more.
			if _, err := openShared(t, store).Revoke(t.Context(), "leaked"); err != nil && !errors.Is(err, ErrNoKey) {
				t.Fatal(err)
			}
			server.refreshing.readAgain = 0 // the time has passed
			if err := server.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, ok := server.Check(issued.APIKey); ok {
				t.Error("the server accepts the revoked key")
			}
		})
	}
}

// waiting is a store of which one write waits.
type waiting struct {
	kv.Store
	holds  atomic.Bool // the next write
	begun  chan struct{}
	goesOn chan struct{}
}

func (w *waiting) Write(ctx context.Context, b kv.Batch) error {
	if w.holds.CompareAndSwap(true, false) {
		close(w.begun)
		<-w.goesOn
	}
	return w.Store.Write(ctx, b)
}

// A user who registers again while the first, failed attempt is being announced gets no second account.
func TestRegistrationBesideAnAnnouncement(t *testing.T) {
	doubtful := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
	store := &waiting{Store: doubtful, begun: make(chan struct{}), goesOn: make(chan struct{})}
	accounts := openAccounts(t, store, Config{Shared: true, Registration: RegistrationOpen})
	keys, err := OpenKeyring(t.Context(), accounts)
	if err != nil {
		t.Fatal(err)
	}
	who := Registrant{Email: somebody, Password: secret, Address: where(1)}
	doubtful.Fail, doubtful.How = 1, kvtest.Begun
	if _, _, err := accounts.Register(t.Context(), who); !errors.Is(err, kvtest.ErrDoubtful) {
		t.Fatal(err)
	}
	store.holds.Store(true)
	refreshed := make(chan error, 1)
	go func() { refreshed <- keys.Refresh(t.Context()) }()
	<-store.begun
	_, _, err = accounts.Register(t.Context(), who)
	if taken := (*Invalid)(nil); err != nil && (!errors.As(err, &taken) || taken.Field != FieldEmail) {
		t.Error(err)
	}
	close(store.goesOn)
	if err := <-refreshed; err != nil {
		t.Error(err)
	}
	if problems := openAccounts(t, store, Config{Shared: true}).rows.unreadableTexts(); len(problems) > 0 {
		t.Error(problems)
	}
}

// An announcement that is tried again has the same value, unless another change has failed since: each value makes all
// processes read everything.
func TestAnnouncementsAgain(t *testing.T) {
	var a announcements
	if value, of := a.due(); value != "" || of != 0 {
		t.Errorf("due before a change has failed: %q, %d", value, of)
	}
	a.fail()
	first, of := a.due()
	if again, _ := a.due(); again != first || first == "" {
		t.Errorf("two attempts have the values %q and %q", first, again)
	}
	a.fail()
	second, both := a.due()
	if second == first {
		t.Error("a further change has the same value")
	}
	a.done(of)
	if again, _ := a.due(); again != second {
		t.Errorf("the second change is announced by %q, expected %q", again, second)
	}
	a.done(both)
	a.done(of) // which took longer
	if value, _ := a.due(); value != "" {
		t.Errorf("due after all: %q", value)
	}
}

// A change of a store of one process may be made after it was refused, as on a full disk. The process learns of it once the store
// works again, and a user who registers again before that gets no second account.
func TestChangeThatIsMadeLater(t *testing.T) {
	for _, again := range []bool{false, true} {
		store := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
		accounts := openAccounts(t, store, Config{Registration: RegistrationOpen})
		keys, err := OpenKeyring(t.Context(), accounts)
		if err != nil {
			t.Fatal(err)
		}
		who := Registrant{Email: somebody, Password: secret, Address: where(1)}
		store.Fail, store.How = 1, kvtest.Late
		if _, _, err := accounts.Register(t.Context(), who); !errors.Is(err, kvtest.ErrDoubtful) {
			t.Fatal(err)
		}
		if again {
			_, _, err := accounts.Register(t.Context(), who)
			if taken := (*Invalid)(nil); !errors.As(err, &taken) || taken.Field != FieldEmail {
				t.Errorf("the second registration: %v, expected that the address is taken", err)
			}
		}
		for range 2 { // the first one announces the change, the second one reads it
			if err := keys.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := accounts.Find(somebody); err != nil {
			t.Errorf("registered again: %t: %v", again, err)
		}
		if problems := openAccounts(t, store, Config{}).rows.unreadableTexts(); len(problems) > 0 {
			t.Error(problems)
		}
	}
}

// TestCreateBeforeAnEarlierChangeIsSettled: the error of an account that is not created because an earlier change may still be
// made says so.
func TestCreateBeforeAnEarlierChangeIsSettled(t *testing.T) {
	doubtful := kvtest.NewDoubtful(openStore(t, vfs.NewMem()))
	accounts := openAccounts(t, doubtful, Config{})
	for _, want := range []string{"create an account", "settle an earlier change, which failed and may be made all the same"} {
		doubtful.Fail, doubtful.How = 1, kvtest.Begun
		if _, _, err := accounts.Create(t.Context(), NewAccount{Email: somebody, Role: RoleUser}); !errors.Is(err, kvtest.ErrDoubtful) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}
