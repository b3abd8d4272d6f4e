package account

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/limit"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// expiring gives an account as many keys as it may have, of which one has expired and one is missing. It returns the ID
// of the expired one. Its process has the time of two hours ago: a key cannot be created with an expiry in the past.
func expiring(t *testing.T, store kv.Store, most uint32) (owner ID, expired string) {
	t.Helper()
	before := time.Now().Add(-2 * time.Hour)
	r, err := OpenKeyring(t.Context(), openAccounts(t, store, Config{Shared: true, Now: func() time.Time { return before }}))
	if err != nil {
		t.Fatal(err)
	}
	_, a, err := r.accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err == nil {
		a, err = r.accounts.SetLimits(t.Context(), somebody, Limits{Keys: most})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range most {
		var n NewKey
		if i == 0 {
			n.Expires = before.Add(time.Hour)
		}
		issued, err := r.Of(a.ID).Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			expired = issued.Key.ID.String()
		}
	}
	return a.ID, expired
}

// An expired key that is made valid again at one process counts at the other, as one that is created does.
func TestLimitOfKeysThatAreValidAgain(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	owner, expired := expiring(t, store, 4)
	here := openShared(t, store)
	there := openShared(t, store)
	created, err := here.Of(owner).Create(t.Context(), NewKey{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Of(owner).Expire(t.Context(), expired, time.Time{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("valid again beside a key of another process: %v", err)
	}
	if _, err := here.Revoke(t.Context(), created.Key.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Of(owner).Expire(t.Context(), expired, time.Time{}); err != nil {
		t.Errorf("valid again once the other key is revoked: %v", err)
	}
	if _, err := here.Of(owner).Create(t.Context(), NewKey{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("created beside a key that another process made valid again: %v", err)
	}
	if k, err := there.Of(owner).Expire(t.Context(), expired, time.Now().Add(time.Hour)); err != nil || k.Ended(time.Now()) {
		t.Errorf("another expiry of a key that counts: %+v, %v", k, err)
	}
}

// locked counts how often the lock of changes was taken.
type locked struct {
	kv.Store
	times atomic.Int64
}

func (l *locked) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	if !slices.Equal(value, unlocked) {
		l.times.Add(1)
	}
	return l.Store.CompareAndSet(ctx, name, old, value)
}

// A key more than an account may have is refused without the lock for which all other changes wait, or counts as a change.
func TestRefusedKeysAreCheap(t *testing.T) {
	const most = 3
	store := &locked{Store: openStore(t, vfs.NewMem())}
	owner, expired := expiring(t, store, most)
	here := openShared(t, store)
	there := openShared(t, store)
	create := func(r *Keyring) error { _, err := r.Of(owner).Create(t.Context(), NewKey{}); return err }
	if err := create(here); err != nil {
		t.Fatal(err)
	}
	before := store.times.Load()
	for range 5 {
		if err := create(here); !errors.Is(err, ErrTooMany) {
			t.Errorf("created beside those that are known: %v", err)
		}
	}
	if n := store.times.Load() - before; n != 0 {
		t.Errorf("the lock was taken %d times to refuse a key", n)
	}
	for what, try := range map[string]func() error{
		"created":     func() error { return create(there) },
		"valid again": func() error { _, err := there.Of(owner).Expire(t.Context(), expired, time.Time{}); return err },
	} {
		there.accounts.byAccount = limit.NewTable[ID](limit.Rate{PerSecond: changesPerSecond, Burst: changesBurst}, maxCounted)
		for i := range changesBurst {
			if err := try(); !errors.Is(err, ErrTooMany) {
				t.Fatalf("%s beside those of another process, attempt %d: %v", what, i+1, err)
			}
		}
		before = store.times.Load()
		if err := try(); !errors.As(err, new(*TooSoon)) {
			t.Errorf("%s once too often: %v", what, err)
		}
		if n := store.times.Load() - before; what == "created" && n != 0 {
			t.Errorf("%s once too often: the lock was taken %d times", what, n)
		}
	}
}

// A key that is created, or made valid again, counts as one change.
func TestNewKeysAreOneChange(t *testing.T) {
	const most = 3
	store := openStore(t, vfs.NewMem())
	owner, expired := expiring(t, store, most)
	r := openShared(t, store)
	keys := r.Of(owner)
	r.accounts.byAccount = limit.NewTable[ID](limit.Rate{PerSecond: changesPerSecond, Burst: changesBurst}, maxCounted)
	if _, err := keys.Expire(t.Context(), expired, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Revoke(t.Context(), expired); err != nil { // which is not counted
		t.Fatal(err)
	}
	for i := range changesBurst - 1 {
		issued, err := keys.Create(t.Context(), NewKey{})
		if err == nil {
			_, err = r.Revoke(t.Context(), issued.Key.ID.String())
		}
		if err != nil {
			t.Fatalf("key %d: %v", i+1, err)
		}
	}
	if _, err := keys.Create(t.Context(), NewKey{}); !errors.As(err, new(*TooSoon)) {
		t.Errorf("more changes than an account may make at once: %v", err)
	}
}
