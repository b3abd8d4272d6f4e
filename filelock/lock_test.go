package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"ashlar/filelock"
)

// A file and a directory are locked until they are closed.
func TestLock(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skipf("%s: not every system has such locks", runtime.GOOS)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, dir} {
		open := func() *os.File {
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = file.Close() })
			return file
		}
		first, second := open(), open()
		if err := filelock.Lock(first); err != nil {
			t.Fatal(err)
		}
		if err := filelock.Lock(second); !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("%s: a second lock: %v, expected %v", path, err, filelock.ErrLocked)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := filelock.Lock(second); err != nil {
			t.Errorf("%s: after the first was closed: %v", path, err)
		}
	}
}
