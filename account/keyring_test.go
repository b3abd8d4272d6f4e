package account

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func openStore(t testing.TB, fs vfs.FS) kv.Store {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "keys", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func openKeyring(t testing.TB, store kv.Store) *Keyring {
	t.Helper()
	r, err := OpenKeyring(context.Background(), openAccounts(t, store, Config{}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func create(t testing.TB, r *Keyring, name string) (string, Key) {
	t.Helper()
	issued, err := r.Create(context.Background(), NewKey{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return issued.APIKey, issued.Key
}

func TestKeysLiveAndEnd(t *testing.T) {
	ctx, fs := context.Background(), vfs.NewMem()
	store := openStore(t, fs)
	r := openKeyring(t, store)
	first, firstKey := create(t, r, "first")
	second, _ := create(t, r, "second")
	if len(first) != 32 || first == second {
		t.Fatalf("keys %q and %q, expected 32 digits and no two alike", first, second)
	}
	if k, ok := r.Check(first); !ok || k.ID != firstKey.ID {
		t.Errorf("a new key is not accepted: %v, %t", k, ok)
	}
	revoked, err := r.Revoke(ctx, "first")
	if err != nil || revoked.Live() || revoked.ID != firstKey.ID {
		t.Fatalf("revoked: %+v, %v", revoked, err)
	}
	for _, when := range []string{"at once", "after opening again"} {
		if _, ok := r.Check(first); ok {
			t.Error("a revoked key is accepted", when)
		}
		if _, ok := r.Check(second); !ok {
			t.Error("a live key is rejected", when)
		}
		keys, err := r.List(ctx)
		if err != nil || len(keys) != 2 || keys[0] != revoked || keys[1].Name != "second" {
			t.Errorf("%s: keys %+v, %v", when, keys, err)
		}
		if when == "at once" {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			store = openStore(t, fs)
			r = openKeyring(t, store)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRevokeFindsKeys(t *testing.T) {
	ctx := context.Background()
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	r := openKeyring(t, store)
	create(t, r, "") // an empty name must not match a key without a name
	_, a := create(t, r, "twice")
	_, b := create(t, r, "twice")

	_, err := r.Revoke(ctx, "twice")
	if !errors.Is(err, ErrAmbiguous) || !strings.Contains(err.Error(), a.ID.String()) || !strings.Contains(err.Error(), b.ID.String()) {
		t.Errorf("a name of two keys: %v", err)
	}
	if k, err := r.Revoke(ctx, a.ID.String()); err != nil || k.ID != a.ID {
		t.Errorf("by ID: %+v, %v", k, err)
	}
	again, err := r.Revoke(ctx, a.ID.String())
	if err != nil || again.Live() {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if k, err := r.Revoke(ctx, "twice"); err != nil || k.ID != b.ID {
		t.Errorf("by a name of one live key: %+v, %v", k, err)
	}
	for _, none := range []string{"twice", "nobody", "", strings.Repeat("0", 16)} {
		if _, err := r.Revoke(ctx, none); !errors.Is(err, ErrNoKey) {
			t.Errorf("%q: %v, expected ErrNoKey", none, err)
		}
	}
}

func TestCheckRejectsUnknownKeys(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	r := openKeyring(t, store)
	secret, k := create(t, r, "")
	for _, wrong := range []string{"", secret[1:], secret + "0", strings.ToUpper(secret) + " ", strings.Repeat("0", 32), k.ID.String()} {
		if _, ok := r.Check(wrong); ok {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestNamesAreChecked(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	r := openKeyring(t, store)
	for _, bad := range []string{"a\nb", "\x1b[2J", "\xff", strings.Repeat("n", 101)} {
		if _, err := r.Create(context.Background(), NewKey{Name: bad}); err == nil {
			t.Errorf("the name %q is accepted", bad)
		}
	}
	create(t, r, "Überprüfung 1 – küche")
}

// TestStoreHoldsNoKey searches for the secret in all rows of a key.
func TestStoreHoldsNoKey(t *testing.T) {
	ctx := context.Background()
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	secret, _ := create(t, openKeyring(t, store), "name")
	rows := 0
	for row, err := range store.Walk(ctx, keyRevisions, 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
		if all := fmt.Appendf(nil, "%s%s%x%x", row.Partition, row.Value, row.Partition, row.Value); bytes.Contains(all, []byte(secret)) {
			t.Error("the store holds the key")
		}
	}
	if rows != 1 {
		t.Errorf("%d rows, expected 1", rows)
	}
}

// A row that cannot be read disables the key or the account that it belongs to, and is named.
// Others work.
func TestUnreadableRowsDisableOneKey(t *testing.T) {
	secrets := `"secrets":[{"hash":"` + strings.Repeat("00", 32) + `","made":1}]`
	record := func(members string) []byte {
		return append([]byte{formRecord}, `{"name":"n","created":1,`+members+`}`...)
	}
	for _, c := range []struct {
		name  string
		value []byte
		want  string // empty: valid
	}{
		{"a record", record(secrets), ""},
		{"nothing", nil, "expected 0x1"},
		{"unknown form", []byte{3}, "form 03, expected 0x1"},
		{"broken name", append([]byte{formRecord}, `{"name":"a\u0007","created":1,`+secrets+`}`...), "the stored name"},
		{"unknown member", record(secrets + `,"moons":1`), "unknown field"},
		{"unknown rule", record(secrets + `,"rules":{"moons":1}`), "unknown field"},
		{"wrong rule", record(secrets + `,"rules":{"methods":["a b"]}`), "invalid method"},
		{"something after it", append(record(secrets), "{}"...), "unexpected data after"},
		{"no secret", record(`"secrets":[]`), "0 secrets"},
		{"half a hash", record(`"secrets":[{"hash":"00","made":1}]`), "invalid hash"},
		{"an account that is not there", record(secrets + `,"owner":"0102030405060708"`), "no such account"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, Config{})
			other := f.key(f.keys, NewKey{Name: "other"})
			secret := newSecret()
			first, _ := hashOf(secret)
			f.putRow(keyRevisions, first[:], bytes.ReplaceAll(c.value, []byte(strings.Repeat("00", 32)), []byte(hex.EncodeToString(first[:]))))
			f.reopen()
			if got := f.checks(secret); got != (c.want == "") {
				t.Errorf("the key is accepted: %t", got)
			}
			if !f.checks(other.APIKey) {
				t.Error("another key is not accepted")
			}
			named := f.accounts.Unreadable()
			if c.want == "" {
				if len(named) > 0 {
					t.Errorf("unreadable: %q", named)
				}
				return
			}
			id := first.keyID().String()
			if len(named) != 1 || !strings.Contains(named[0], "key "+id) || !strings.Contains(named[0], c.want) {
				t.Errorf("unreadable: %q, expected %q of key %s", named, c.want, id)
			}
			if k, err := f.keys.Find(id); err != nil || !strings.Contains(k.Unreadable, c.want) {
				t.Errorf("listed as %+v, %v", k, err)
			}
			if _, err := f.keys.Restrict(t.Context(), id, Rules{}); !errors.Is(err, ErrUnreadable) {
				t.Errorf("restricted: %v", err)
			}
			if _, err := f.keys.Revoke(t.Context(), id); err != nil || len(f.accounts.Unreadable()) > 0 {
				t.Errorf("revoked: %v; still unreadable: %q", err, f.accounts.Unreadable())
			}
			f.reopen()
			if k, err := f.keys.Find(id); err != nil || k.Live() || f.checks(secret) {
				t.Errorf("opened again: %+v, %v", k, err)
			}
		})
	}
}

// putRow writes a row of the store.
func (f *fixture) putRow(table *kv.Table, partition, value []byte) {
	f.Helper()
	b := f.store.NewBatch()
	b.Put(table, partition, 0, value)
	if err := f.store.Write(f.Context(), b); err != nil {
		f.Fatal(err)
	}
}

func TestUnreadableAccountsAndInvitations(t *testing.T) {
	f := newFixture(t, Config{})
	kept, _, err := f.accounts.Create(t.Context(), NewAccount{Email: somebody})
	if err != nil {
		t.Fatal(err)
	}
	id := ID{1}
	f.putRow(accountRevisions, id[:], []byte("\x01"+`{"email":"new@example.org","role":"user","created":1,"moons":2}`))
	f.putRow(invitationRevisions, make([]byte, len(hash{})), []byte("\x01"+`{"role":"user","created":1,"expires":2,"moons":2}`))
	f.reopen()
	if named := f.accounts.Unreadable(); len(named) != 2 || !strings.Contains(named[0], "account "+id.String()) || !strings.Contains(named[1], "invitation 00") {
		t.Errorf("unreadable: %q", named)
	}
	a, err := f.accounts.Find("new@example.org")
	if err != nil || a.ID != id || a.Enabled() || !strings.Contains(a.Unreadable, "moons") {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := f.accounts.Enable(t.Context(), "new@example.org"); !errors.Is(err, ErrUnreadable) {
		t.Errorf("enabled: %v", err)
	}
	if _, err := f.keys.Of(id).Create(t.Context(), NewKey{}); !errors.Is(err, ErrDisabled) {
		t.Errorf("a key of it: %v", err)
	}
	if _, err := f.accounts.Resume(Session(id.String() + ".0")); !errors.Is(err, ErrSession) {
		t.Errorf("a session of it: %v", err)
	}
	if _, _, err := f.accounts.SetPassword(t.Context(), kept, secret, where(1)); err != nil {
		t.Errorf("another account: %v", err)
	}
}

// A store with rows of another form altogether is not opened.
func TestOpenRefusesForeignPartitions(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	b := store.NewBatch()
	b.Put(keyRevisions, []byte("x"), 0, []byte{formRecord, '{', '}'})
	if err := store.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeyring(t.Context(), openAccounts(t, store, Config{})); err == nil || !strings.Contains(err.Error(), "a partition of 1 bytes, expected 32") {
		t.Errorf("error %v", err)
	}
}

func TestKeyringFromManyGoroutines(t *testing.T) {
	ctx, store := context.Background(), openStore(t, vfs.NewMem())
	defer store.Close()
	r := openKeyring(t, store)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := range 10 {
				issued, err := r.Create(ctx, NewKey{Name: fmt.Sprintf("%d-%d", n, i)})
				secret, k := issued.APIKey, issued.Key
				if _, ok := r.Check(secret); err != nil || !ok {
					t.Errorf("created: %v, accepted: %t", err, ok)
				}
				_, err = r.Revoke(ctx, k.Name)
				if _, ok := r.Check(secret); err != nil || ok {
					t.Errorf("revoked: %v, accepted: %t", err, ok)
				}
			}
		})
	}
	group.Wait()
	if keys, err := openKeyring(t, store).List(ctx); err != nil || len(keys) != 40 {
		t.Errorf("%d keys, %v; expected 40", len(keys), err)
	}
}

func BenchmarkCheck(b *testing.B) {
	store := openStore(b, vfs.NewMem())
	defer store.Close()
	r := openKeyring(b, store)
	secret, _ := create(b, r, "")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := r.Check(secret); !ok {
			b.Fatal("refused")
		}
	}
}
