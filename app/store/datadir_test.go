package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/app/store"
	"ashlar/kv"
)

// linked returns a data directory whose network large is a symbolic link to the returned
// directory, and whose network small is a directory.
func linked(t *testing.T) (data store.Dir, target string) {
	t.Helper()
	data, target = store.Dir(t.TempDir()), filepath.Join(t.TempDir(), "large")
	for _, name := range []string{"large", "small"} {
		makeStore(t, data, name)
	}
	if err := errors.Join(os.Rename(data.Network("large"), target), os.Symlink(target, data.Network("large"))); err != nil {
		t.Fatal(err)
	}
	return data, target
}

// A network whose directory is a symbolic link, as docs/guides/moving-disks.md says, is one of
// the networks: it is listed, has a size, and opens.
func TestNetworkBehindLink(t *testing.T) {
	data, _ := linked(t)
	if names, err := data.Names(); err != nil || !slices.Equal(names, []string{"large", "small"}) {
		t.Errorf("the networks are %q, %v, expected large and small", names, err)
	}
	large, err := data.Bytes("large")
	if err != nil {
		t.Fatal(err)
	}
	small, err := data.Bytes("small")
	if err != nil || large < small/2 {
		t.Errorf("the network behind a link has %d bytes, the other %d, %v", large, small, err)
	}
	opened, err := data.OpenNetwork("large", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}

// While a network is copied, its size stays that of its store.
func TestBytesWithoutCheckpoint(t *testing.T) {
	data := store.Dir(t.TempDir())
	makeStore(t, data, "small")
	opened, err := data.OpenNetwork("small", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	before, err := data.Bytes("small")
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := opened.(kv.Checkpointer).Checkpoint(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if during, err := data.Bytes("small"); err != nil || during > before+before/2 {
		t.Errorf("%d bytes beside a checkpoint, %v, and %d before", during, err, before)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// A directory within a data directory is refused with the name of that one. A file with the name of a folder makes no data directory.
func TestDirectoryMeant(t *testing.T) {
	root := t.TempDir()
	data := store.Dir(filepath.Join(root, "data"))
	makeStore(t, data, "small")
	accounts, err := data.OpenAccounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := accounts.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(root, "etc")
	if err := errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, "networks"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(data.Network("small"))
	for dir, want := range map[string]string{
		filepath.Join(string(data), "accounts"): "; did you mean " + string(data) + "?",
		filepath.Join(string(data), "networks"): "; did you mean " + string(data) + "?",
		data.Network("small"):                   "; did you mean " + string(data) + "?",
		".":                                     "; did you mean " + string(data) + "?",
		other:                                   `it has "networks", and neither accounts nor networks; expected a directory that ashlar made, or an empty one`,
	} {
		if err := store.Dir(dir).Check(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", dir, err, want)
		}
	}
	if err := data.Check(); err != nil {
		t.Error(err)
	}
}

// A link to a disk that is not mounted does not hide its network, which would then be left out
// of the service and of backups without a word.
func TestNetworkBehindDanglingLink(t *testing.T) {
	data, target := linked(t)
	if err := os.Rename(target, target+"-unmounted"); err != nil {
		t.Fatal(err)
	}
	if names, err := data.Names(); err != nil || !slices.Equal(names, []string{"large", "small"}) {
		t.Errorf("the networks are %q, %v, expected large and small", names, err)
	}
	if found, err := data.Exists(t.Context(), "large"); !found || err != nil {
		t.Errorf("it exists: %v, %v, expected true", found, err)
	}
	if _, err := data.OpenNetwork("large", kv.Options{}); err == nil || !strings.Contains(err.Error(), "is a symbolic link to "+target+", which does not exist") || kv.IsDamage(err) {
		t.Errorf("opening it: %v", err)
	}
	if size, err := data.Bytes("large"); err != nil || size != 0 {
		t.Errorf("its size is %d, %v", size, err)
	}
}

// Removing the link alone would leave the blocks on the other disk.
func TestRemoveRefusesLink(t *testing.T) {
	data, target := linked(t)
	if err := data.Remove("large"); err == nil || !strings.Contains(err.Error(), "is a symbolic link to "+target) {
		t.Errorf("removing it: %v", err)
	}
	if names, err := data.Names(); err != nil || !slices.Equal(names, []string{"large", "small"}) {
		t.Errorf("the networks are %q, %v, expected large and small", names, err)
	}
}

// TestCheck: what is in a data directory besides its stores does not make it a foreign one, such as the secret of a
// consensus client that was made before the first start.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		names []string
		ours  bool
	}{
		{nil, true},
		{[]string{"engine", "certificates"}, true},
		{[]string{"backup-0123456789abcdef.json", "control.sock", "lost+found", ".restore"}, true},
		{[]string{"engine", "letters"}, false},
		{[]string{"backups"}, false},
		{[]string{"letters", "networks"}, true},
	} {
		dir := t.TempDir()
		for _, name := range test.names {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Dir(dir).Check(); (err == nil) != test.ours {
			t.Errorf("a directory with %q: %v, accepted should be %t", test.names, err, test.ours)
		}
	}
}
