package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// original makes a data directory with two networks and a key.
func original(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	demoOf(t, named(t, "evm"), dir, "small", 8)
	demoOf(t, named(t, "starknet"), dir, "other", 5)
	keys, closer, err := OpenAccounts(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = keys.Keys.Create(t.Context(), account.NewKey{Name: "one"})
	if err := errors.Join(err, closer.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkCopy compares the status of two places, and verifies the second.
func checkCopy(t *testing.T, from, to string, networks ...string) {
	t.Helper()
	want, err := ReadStatus(t.Context(), from, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadStatus(t.Context(), to, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range networks {
		by := func(n family.Status) bool { return n.Name == network }
		a, b := want.Networks[slices.IndexFunc(want.Networks, by)], got.Networks[slices.IndexFunc(got.Networks, by)]
		if a.Head != b.Head || a.Settled != b.Settled || a.Family != b.Family {
			t.Errorf("network %s: %+v, expected %+v", network, b, a)
		}
		v := Verify{Data: to, Network: network, Verification: family.Verification{To: Head}}
		if err := v.Run(t.Context(), new(strings.Builder), os.Stderr); err != nil {
			t.Error(err)
		}
	}
	if len(got.Networks) != len(networks) {
		t.Errorf("%d networks, expected %d", len(got.Networks), len(networks))
	}
}

func TestCopy(t *testing.T) {
	from := original(t)
	to := filepath.Join(t.TempDir(), "new")
	all := Copy{From: from, To: to}
	for range 2 { // the second finds everything copied
		if err := all.Run(t.Context(), os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	checkCopy(t, from, to, "small", "other")
	keys, closer, err := OpenAccounts(t.Context(), to, "")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := keys.Keys.List(t.Context()); err != nil || len(all) != 1 || all[0].Name != "one" || !all[0].Live() {
		t.Errorf("keys in the copy: %+v, %v", all, err)
	}
	_, err = keys.Keys.Create(t.Context(), account.NewKey{Name: "two"})
	if err := errors.Join(err, closer.Close()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v in the directory, expected accounts and networks alone", entries, err)
	}

	one := Copy{From: from, To: t.TempDir(), Network: "other"}
	if err := one.Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	checkCopy(t, from, one.To, "other")
	if store.Dir(one.To).HasStore(store.AccountsName) {
		t.Error("accounts are copied with one network")
	}
}

// TestCopyInterrupted stops a copy while it runs; the same command completes it.
func TestCopyInterrupted(t *testing.T) {
	from := original(t)
	to := t.TempDir()
	dir := store.Dir(to)
	source, err := store.Dir(from).OpenToCopy(t.Context(), "networks/small")
	if err != nil {
		t.Fatal(err)
	}
	options, err := copyOptions(t.Context(), source, "networks/small")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := copyOnce(ctx, source, dir, "networks/small", options); !errors.Is(err, context.Canceled) {
		t.Errorf("a copy that was stopped: %v", err)
	}
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	if dir.Has("small") {
		t.Error("half a copy can be served")
	}
	if names, err := dir.Names(); err != nil || len(names) > 0 {
		t.Errorf("networks %q, %v, expected none", names, err)
	}
	if err := (Copy{From: from, To: to}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	checkCopy(t, from, to, "small", "other")
}

func TestCopyRefused(t *testing.T) {
	from := original(t)
	held, err := store.Dir(from).OpenNetwork("small", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	if err := (Copy{From: from, To: empty, Network: "small"}).Run(t.Context(), os.Stderr); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("an open store: %v, expected ErrInUse", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	existing := t.TempDir()
	demoOf(t, named(t, "evm"), existing, "small", 3)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		copied Copy
		want   string
	}{
		{Copy{From: from, To: existing, Network: "small"}, "is not a copy of the original"},
		{Copy{From: from, To: from}, "the same place"},
		{Copy{From: from, To: empty, Network: "smal"}, "did you mean small?"},
		{Copy{From: empty, To: existing}, "nothing to copy"},
		{Copy{From: from, To: foreign}, "is not a data directory"},
		{Copy{From: from, To: filepath.Join(empty, "none.yaml")}, "none.yaml"},
	} {
		if err := test.copied.Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, expected %s", test.copied, err, test.want)
		}
	}
}
