package command

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/app/backup"
	"ashlar/app/store"
)

// TestRestoreReplaces restores over stores that exist: only if asked to, only whole, and
// other networks stay.
func TestRestoreReplaces(t *testing.T) {
	data, to := smallNetwork(t), t.TempDir()
	if err := (Backup{Data: data, To: to}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	saved := files(t, data)
	demoOf(t, named(t, "evm"), data, "other", 2)
	if err := os.WriteFile(filepath.Join(data, "networks", "small", "000999.log"), []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := files(t, data)
	restore := Restore{From: to, Data: data}
	if err := restore.Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "networks/small") || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("restore over a network: %v, expected an error with its name", err)
	}
	restore.Replace = true
	objects, err := filepath.Glob(filepath.Join(to, "objects", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		whole, err := os.ReadFile(object)
		if err != nil || len(whole) == 0 {
			continue
		}
		if err := os.WriteFile(object, whole[:len(whole)-1], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := restore.Run(t.Context(), os.Stderr); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("restore with a damaged content: %v, expected ErrDamaged", err)
		}
		if !maps.Equal(damaged, files(t, data)) {
			t.Fatal("a restore that failed changed the network")
		}
		// The next attempt would reuse the objects that this one read, and not read the damaged one.
		if err := errors.Join(os.WriteFile(object, whole, 0o600), os.RemoveAll(store.Dir(data).Staging())); err != nil {
			t.Fatal(err)
		}
	}
	if err := restore.Check(t.Context(), os.Stderr); err != nil {
		t.Error(err)
	}
	if err := restore.Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	now := files(t, data)
	for path := range saved {
		if base := filepath.Base(path); base == "LOCK" || base == "owner.pid" {
			delete(saved, path)
		}
	}
	for path, text := range now {
		if strings.HasSuffix(path, ".sst") && saved[path] != text {
			t.Errorf("%s has other contents than before", path)
		}
	}
	if _, ok := now[filepath.Join(data, "networks", "small", "000999.log")]; ok {
		t.Error("the damage is still there")
	}
	if _, err := os.Stat(store.Dir(data).Staging()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the staging directory after a restore: %v, expected none", err)
	}
	for _, network := range []string{"small", "other"} {
		if text, err := runVerify(t.Context(), Verify{Data: data, Network: network}); err != nil || !strings.HasSuffix(text, ": sound\n") {
			t.Errorf("verify %s: %q, %v", network, text, err)
		}
	}
}

// TestRestoreAccounts restores the accounts alone, and with a network, and refuses to do so from a backup without them. The newest
// backup with all stores is named then.
func TestRestoreAccounts(t *testing.T) {
	data, to := withAccounts(t), t.TempDir()
	if err := (Backup{Data: data, To: to}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	for _, networks := range [][]string{nil, {"small"}} {
		restored := filepath.Join(t.TempDir(), "restored")
		log := logged(t, func() error {
			return Restore{From: to, Data: restored, Accounts: true, Networks: networks}.Run(t.Context(), os.Stderr)
		})
		if got, err := store.Dir(restored).Names(); err != nil || !slices.Equal(got, networks) {
			t.Errorf("restored the networks %q, %v, expected %q", got, err, networks)
		}
		if names := keyNames(t, restored); !slices.Equal(names, []string{"first"}) || !strings.Contains(log, "accounts") {
			t.Errorf("keys %v after restoring, expected the first; the log: %s", names, log)
		}
	}
	target, err := backup.OpenTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := backup.Names(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Backup{Data: data, To: to, Networks: []string{"small"}}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if err := (Restore{From: to, Data: t.TempDir(), Accounts: true}).Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "has no accounts, only networks/small (want --backup NAME") {
		t.Errorf("restore of accounts that the newest backup does not have: %v", err)
	}
	if err := (Restore{From: to, Data: t.TempDir()}).Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "the newest that has all stores is "+whole[0]) {
		t.Errorf("restore of the newest backup, which is of one network: %v, expected the name %s", err, whole)
	}
}

// TestDamagedFileOfBackup: the check and the restore name a damaged file, and say what to do. The next backup stores it again once it
// is removed, and not before.
func TestDamagedFileOfBackup(t *testing.T) {
	data, to := smallNetwork(t), t.TempDir()
	made := func() {
		t.Helper()
		if err := (Backup{Data: data, To: to}).Run(t.Context(), os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	made()
	objects, err := filepath.Glob(filepath.Join(to, "objects", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	largest, content := "", []byte(nil)
	for _, object := range objects {
		text, err := os.ReadFile(object)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > len(content) {
			largest, content = object, text
		}
	}
	content[0] ^= 1
	if err := os.WriteFile(largest, content, 0o600); err != nil {
		t.Fatal(err)
	}
	name, err := filepath.Rel(to, largest)
	if err != nil {
		t.Fatal(err)
	}
	made()
	restored := filepath.Join(t.TempDir(), "restored")
	remedy := "Remove that file from " + to + ", if it is there, and make another backup"
	for want, err := range map[string]error{
		". " + remedy: Restore{From: to}.Check(t.Context(), os.Stderr),
		". No store was replaced (want --backup NAME": Restore{From: to, Data: restored}.Run(t.Context(), os.Stderr),
	} {
		if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), name+" has the hash ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected ErrDamaged, %s and %q", err, name, want)
		}
	}
	if err := os.Remove(largest); err != nil {
		t.Fatal(err)
	}
	if err := (Restore{From: to}).Check(t.Context(), os.Stderr); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), name+" is missing. "+remedy) {
		t.Errorf("check without a file: %v, expected ErrDamaged, %s and %q", err, name, remedy)
	}
	made()
	if err := (Restore{From: to}).Check(t.Context(), os.Stderr); err != nil {
		t.Error(err)
	}
}
