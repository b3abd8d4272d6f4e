package pebble_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// copyEnv names the directory of the store that TestHoldCopy is to copy.
const copyEnv = "KV_PEBBLE_TEST_COPY"

// TestHoldCopy is the process that heldCopy starts. It copies a store and closes it.
func TestHoldCopy(t *testing.T) {
	dir := os.Getenv(copyEnv)
	if dir == "" {
		t.Skip("runs only as a process of another test")
	}
	s := open(t, pebble.Options{Path: dir})
	_, release, err := s.Checkpoint(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	fmt.Println("holding")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has seen enough
	if err := release(); err != nil {
		t.Error(err)
	}
}

// heldCopy starts a process that has a copy of a store, and does not have the store open. release has it remove the copy and end.
func heldCopy(t *testing.T, dir string) (holder *exec.Cmd, release func()) {
	t.Helper()
	return startHolder(t, "TestHoldCopy", copyEnv, dir)
}

func kill(t *testing.T, p *exec.Cmd) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // it was killed
}

// TestCopyOfProcess: a store opens while another process has a copy of it. The copy refuses a second one and what would
// remove the store, and names its process. When the process ends, however it does, both succeed.
func TestCopyOfProcess(t *testing.T) {
	dir := t.TempDir()
	made := filepath.Join(dir, "checkpoint", "test")
	s := open(t, pebble.Options{Path: dir})
	put(t, s, "a", 1, []byte("value"))
	closeStore(t, s)
	for _, killed := range []bool{false, true} {
		holder, release := heldCopy(t, dir)
		names := fmt.Sprint(made, " belongs to process ", holder.Process.Pid)
		s := open(t, pebble.Options{Path: dir})
		if _, _, err := s.Checkpoint(t.Context(), "test"); !errors.Is(err, kv.ErrCheckpoint) || !strings.Contains(err.Error(), names) {
			t.Errorf("a second copy: %v, expected ErrCheckpoint and %q", err, names)
		}
		closeStore(t, s)
		if _, err := pebble.LockToReplace(dir); !errors.Is(err, kv.ErrCheckpoint) || !strings.Contains(err.Error(), names) {
			t.Errorf("lock to replace: %v, expected ErrCheckpoint and %q", err, names)
		}
		if _, err := os.Stat(made); err != nil {
			t.Errorf("the copy, after the store was opened and closed: %v", err)
		}
		s = open(t, pebble.Options{Path: dir})
		if killed {
			kill(t, holder)
		} else {
			release()
		}
		if _, err := os.Stat(made); errors.Is(err, os.ErrNotExist) == killed {
			t.Errorf("the copy of a process, killed %t: %v", killed, err)
		}
		_, released, err := s.Checkpoint(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := released(); err != nil {
			t.Error(err)
		}
		closeStore(t, s)
	}
}

// TestCopyOfKilledProcess: a copy that was left is removed by the next process that opens the store or replaces it.
func TestCopyOfKilledProcess(t *testing.T) {
	for name, next := range map[string]func(dir string) (io.Closer, error){
		"open":    func(dir string) (io.Closer, error) { return pebble.Open(pebble.Options{Path: dir}) },
		"replace": pebble.LockToReplace,
	} {
		dir := t.TempDir()
		holder, _ := heldCopy(t, dir)
		kill(t, holder)
		// A process that is killed early leaves no lock, and what is not a copy is of no use there.
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "checkpoint", "backup"), 0o755), os.WriteFile(filepath.Join(dir, "checkpoint", "0.lock"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		opened, err := next(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "checkpoint")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: copies that were left: %v, expected no directory", name, err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// unnaming is a disk on which a lock file loses its name just before the first lock on it is taken, as if its last owner removed it.
type unnaming struct {
	vfs.FS
	done bool
}

func (u *unnaming) Lock(name string) (io.Closer, error) {
	lock, err := u.FS.Lock(name)
	if err == nil && !u.done && strings.HasSuffix(name, "test.lock") {
		u.done = true
		err = errors.Join(os.Remove(name), os.Remove(filepath.Dir(name)))
	}
	return lock, err
}

// TestCopyAfterRelease: a copy that is made while the last one is released has a lock that others find.
func TestCopyAfterRelease(t *testing.T) {
	disk := &unnaming{FS: vfs.Default}
	dir := t.TempDir()
	s := open(t, pebble.Options{Path: dir, FS: disk})
	made, release, err := s.Checkpoint(t.Context(), "test")
	if err != nil || !disk.done {
		t.Fatal(err)
	}
	closeStore(t, s)
	closeStore(t, open(t, pebble.Options{Path: dir}))
	if _, err := os.Stat(made); err != nil {
		t.Errorf("the copy, after the store was opened and closed: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
