package account

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// expiring gives an account as many keys as it may have, of which one has expired and one is missing. It returns the ID
// of the expired one.
func (r *Keyring) expiring(t *testing.T, most uint32) (owner ID, expired string) {
	t.Helper()
	_, a, err := r.accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err == nil {
		a, err = r.accounts.SetLimits(t.Context(), somebody, Limits{Keys: most})
	}
	if err != nil {
		t.Fatal(err)
	}
	ends := time.Now().Add(time.Second)
	for i := range most {
		var n NewKey
		if i == 0 {
			n.Expires = ends
		}
		issued, err := r.Of(a.ID).Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			expired = issued.Key.ID.String()
		}
	}
	time.Sleep(time.Until(ends))
	return a.ID, expired
}

// An expired key that is made valid again at one process counts at the other, as one that is created does.
func TestLimitOfKeysThatAreValidAgain(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here := openShared(t, store)
	owner, expired := here.expiring(t, 4)
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
