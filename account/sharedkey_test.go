package account

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// openShared opens the keys of a store that other processes use too.
func openShared(t *testing.T, store kv.Store) *Keyring {
	t.Helper()
	r, err := OpenKeyring(t.Context(), openAccounts(t, store, Config{Shared: true}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Two processes change one key before either knows of the other's changes: all changes hold.
func TestKeyAtTwoProcesses(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here := openShared(t, store)
	oldest, key := create(t, here, "before")
	there := openShared(t, store)
	id, name, expires := key.ID.String(), "after", time.Now().Add(time.Hour)
	if _, err := here.Restrict(t.Context(), id, Rules{PerDay: 7}); err != nil {
		t.Fatal(err)
	}
	if renamed, err := there.Edit(t.Context(), id, KeyEdit{Name: &name}); err != nil || renamed.Rules == nil || renamed.Rules.PerDay != 7 {
		t.Fatalf("renamed: %+v, %v; expected the limit of the other process", renamed, err)
	}
	guarded, err := here.Guard(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Expire(t.Context(), id, expires); err != nil {
		t.Fatal(err)
	}
	first, err := here.Rotate(t.Context(), id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	second, err := there.Rotate(t.Context(), id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Keyring{"here": here, "there": there, "opened again": openShared(t, store)}
	for where, r := range all {
		if err := r.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Check(oldest); ok {
			t.Errorf("%s: the text from before both rotations is accepted", where)
		}
		for _, text := range []string{first.APIKey, second.APIKey} {
			k, ok := r.Check(text)
			if !ok {
				t.Errorf("%s: a text from a rotation is not accepted", where)
				continue
			}
			if k.Name != name || k.Rules == nil || k.Rules.PerDay != 7 || !k.Accepts(guarded.Password) || k.Accepts("") || k.Expires.Unix() != expires.Unix() {
				t.Errorf("%s: the key is %+v", where, k)
			}
		}
	}

	if _, err := here.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Rotate(t.Context(), id, 0); !errors.Is(err, ErrNoKey) {
		t.Errorf("rotated after another process revoked the key: %v", err)
	}
	if _, err := there.Restrict(t.Context(), id, Rules{PerDay: 8}); !errors.Is(err, ErrNoKey) {
		t.Errorf("restricted after another process revoked the key: %v", err)
	}
	if _, ok := there.Check(second.APIKey); ok {
		t.Error("a key is accepted after a change has read that another process revoked it")
	}
	if again, err := there.Revoke(t.Context(), id); err != nil || again.Live() {
		t.Errorf("revoked at both: %+v, %v", again, err)
	}
}

// Two processes set the same limit before either knows of the other's change, or revoke the same key: when the
// call returns, its process obeys.
func TestSameRestrictionAtTwoProcesses(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here := openShared(t, store)
	text, key := create(t, here, "key")
	there := openShared(t, store)
	id := key.ID.String()
	for _, r := range []*Keyring{here, there} {
		if _, err := r.Restrict(t.Context(), id, Rules{PerDay: 7}); err != nil {
			t.Fatal(err)
		}
		if k, ok := r.Check(text); !ok || k.Rules == nil || k.Rules.PerDay != 7 {
			t.Errorf("limited at both: %+v, %v", k, ok)
		}
	}
	for _, r := range []*Keyring{here, there} {
		if k, err := r.Revoke(t.Context(), id); err != nil || k.Live() {
			t.Errorf("revoked at both: %+v, %v", k, err)
		}
		if _, ok := r.Check(text); ok {
			t.Error("a revoked key is accepted")
		}
	}
}

// A key is revoked at once while another process has the lock of changes, and while other changes wait for it.
func TestRevokeWaitsForNobody(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	keys := openShared(t, store)
	text, key := create(t, keys, "key")
	unlock, err := keys.accounts.rows.lock(t.Context(), onceDurable)
	if err != nil {
		t.Fatal(err)
	}
	rotated := make(chan error, 1)
	go func() {
		_, err := keys.Rotate(t.Context(), key.ID.String(), 0)
		rotated <- err
	}()
	if _, err := keys.Revoke(t.Context(), key.ID.String()); err != nil {
		t.Error(err)
	}
	if _, ok := keys.Check(text); ok {
		t.Error("a revoked key is accepted")
	}
	select {
	case err := <-rotated:
		t.Errorf("rotated without the lock: %v", err)
	default:
	}
	unlock()
	if err := <-rotated; !errors.Is(err, ErrNoKey) {
		t.Errorf("rotated after it was revoked: %v", err)
	}
}

// Two processes change one key again and again, while accounts are changed as well. No change is lost, also after
// a process has ended in the middle of one.
func TestKeyChangesOfTwoProcesses(t *testing.T) {
	const each = 20
	store := slow{openStore(t, vfs.NewMem())}
	here := openShared(t, store)
	_, owner, err := here.accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err != nil {
		t.Fatal(err)
	}
	_, key := create(t, here, "key")
	there := openShared(t, store)
	if _, err := here.accounts.rows.lock(t.Context(), onceDurable); err != nil { // and never unlocked
		t.Fatal(err)
	}
	var changing sync.WaitGroup
	for _, r := range []*Keyring{here, there} {
		changing.Go(func() {
			for range each {
				if _, err := r.change(t.Context(), key.ID.String(), "change", onceDurable, func(k *revision) error {
					var rules Rules
					if k.Rules != nil {
						rules = *k.Rules
					}
					rules.PerDay++
					k.Rules = &rules
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
		changing.Go(func() {
			for range each {
				if _, err := r.accounts.change(t.Context(), owner.ID.String(), "change", onceDurable, func(p *person) error { p.epoch++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Wait()
	k, err := openShared(t, store).Find(key.ID.String())
	if err != nil || k.Rules == nil || k.Rules.PerDay != 2*each {
		t.Errorf("the key is %+v, %v, want %d changes", k, err, 2*each)
	}
}

// If the newest row of a key cannot be read, restrictions take effect, and nothing else does.
func TestKeyWithoutNewestRow(t *testing.T) {
	keys := openShared(t, unreachable{openStore(t, vfs.NewMem())})
	text, key := create(t, keys, "key")
	id := key.ID.String()
	if k, err := keys.Restrict(t.Context(), id, Rules{PerDay: 7}); err != nil || k.Rules.PerDay != 7 {
		t.Errorf("restrict: %+v, %v", k, err)
	}
	if _, err := keys.Unguard(t.Context(), id); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("remove the password: %v", err)
	}
	if _, err := keys.Rotate(t.Context(), id, 0); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("rotate: %v", err)
	}
	if _, ok := keys.Check(text); !ok {
		t.Error("a rotation that failed has ended the text")
	}
	if _, err := keys.Revoke(t.Context(), id); err != nil {
		t.Errorf("revoke: %v", err)
	}
	if _, ok := keys.Check(text); ok {
		t.Error("a revoked key is accepted")
	}
}

// An edit of a key that was read earlier leaves what another process has changed since, and is refused where both have
// changed the same.
func TestEditOfAnEarlierKey(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	here := openShared(t, store)
	_, read := create(t, here, "before")
	there := openShared(t, store)
	id, after := read.ID.String(), "after"
	if _, err := here.Edit(t.Context(), id, KeyEdit{Name: &after, Rules: &Rules{PerDay: 7}}); err != nil {
		t.Fatal(err)
	}
	k, err := there.Edit(t.Context(), id, KeyEdit{Name: &read.Name, Rules: &Rules{Methods: []string{"eth_call"}}, Expires: &read.Expires, From: &read})
	if err != nil || k.Name != after || k.Rules == nil || k.Rules.PerDay != 7 || len(k.Rules.Methods) != 1 {
		t.Errorf("with another method: %+v, %v", k, err)
	}
	third := "third"
	var conflict *KeyConflict
	_, err = there.Edit(t.Context(), id, KeyEdit{Name: &third, Rules: &Rules{PerDay: 9}, From: &read})
	if !errors.As(err, &conflict) || !slices.Equal(conflict.Fields, []Field{FieldName, FieldPerDay}) || conflict.Key.Rules.PerDay != 7 {
		t.Errorf("with the limit and the name that were changed meanwhile: %v", err)
	}
	if k, err := there.Edit(t.Context(), id, KeyEdit{Name: &after, Rules: &Rules{PerDay: 7}, From: &read}); err != nil || k.Rules.PerDay != 7 || len(k.Rules.Methods) != 1 {
		t.Errorf("with the same change as the other process: %+v, %v", k, err)
	}
	if _, err := there.Edit(t.Context(), id, KeyEdit{Name: &third, Versions: []string{read.Version()}}); !errors.Is(err, ErrKeyVersion) {
		t.Errorf("an edit of a version that was replaced: %v", err)
	}
	if k, err := there.Edit(t.Context(), id, KeyEdit{Name: &third, Versions: []string{read.Version(), conflict.Key.Version()}}); err != nil || k.Name != third {
		t.Errorf("an edit of the present version: %+v, %v", k, err)
	}
}

// An account gets no more keys than it may have by creating them at two processes, one after the other or at once.
func TestLimitOfKeysAtTwoProcesses(t *testing.T) {
	const most = 4
	store := slow{openStore(t, vfs.NewMem())}
	here := openShared(t, store)
	_, owner, err := here.accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err == nil {
		owner, err = here.accounts.SetLimits(t.Context(), somebody, Limits{Keys: most})
	}
	if err != nil {
		t.Fatal(err)
	}
	there := openShared(t, store)
	var ids []string
	for range most {
		issued, err := here.Of(owner.ID).Create(t.Context(), NewKey{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, issued.Key.ID.String())
	}
	if _, err := there.Of(owner.ID).Create(t.Context(), NewKey{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more at another process: %v", err)
	}
	if _, err := there.Create(t.Context(), NewKey{}); err != nil {
		t.Errorf("a key of the operator: %v", err)
	}
	for _, id := range ids {
		if _, err := here.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	var creating sync.WaitGroup
	for _, r := range []*Keyring{here, there} {
		creating.Go(func() {
			for range most {
				if _, err := r.Of(owner.ID).Create(t.Context(), NewKey{}); err != nil && !errors.Is(err, ErrTooMany) {
					t.Error(err)
				}
			}
		})
	}
	creating.Wait()
	all, err := openShared(t, store).Of(owner.ID).List(t.Context())
	live := 0
	for _, k := range all {
		if k.Live() {
			live++
		}
	}
	if err != nil || live != most {
		t.Errorf("the account has %d keys, %v, expected %d", live, err, most)
	}
}
