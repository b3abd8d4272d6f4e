package pebble

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ashlar/kv"
)

// A private store can be read by its user only, also if an earlier version made it.
func TestPrivateStoresAreClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "accounts")
	for _, private := range []bool{false, true, true} {
		store, err := Open(Options{Path: dir, Options: kv.Options{Private: private}})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Compact(t.Context()); err != nil {
			t.Error(err)
		}
		if private {
			checkModes(t, dir)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	checkModes(t, dir)
	if info, err := os.Stat(filepath.Dir(dir)); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the parent has mode %v, %v", info.Mode(), err)
	}
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, expected %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Errorf("%d files, %v", files, err)
	}
}
