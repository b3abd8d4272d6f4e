package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ownerFile holds the ID of the process that has the store open, for messages only.
const ownerFile = "owner.pid"

// located adds the directory of a store to an error of opening it, unless the error names it, or a file in it, already.
func located(dir string, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		if rest, inside := strings.CutPrefix(file.Path, dir); inside && (rest == "" || os.IsPathSeparator(rest[0])) {
			return err
		}
	}
	return fmt.Errorf("open %s: %w", dir, err)
}

// checkDirectory refuses, before anything is touched, a directory that holds
// something other than a store of this package.
func checkDirectory(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kv/pebble: %w", located(dir, err))
	}
	for _, name := range names {
		if !ours(name) {
			return fmt.Errorf("%w: %s is not empty and has a file %q, which is not a store's", kv.ErrForeign, dir, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	found, err := lsm.Peek(dir, fsys)
	if err != nil {
		return fmt.Errorf("kv/pebble: %w", located(dir, err))
	}
	if !found.Exists {
		return checkUnmade(dir, names)
	}
	if found.OptionsFilename == "" {
		return nil // the making of a store did not finish
	}
	comparer, err := comparerOf(fsys, found.OptionsFilename)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process has opened the store and replaced the file; once it is locked, Pebble compares the names, too
	}
	if err != nil {
		return fmt.Errorf("kv/pebble: %w", located(dir, err))
	}
	if comparer != "" && comparer != comparerName {
		return fmt.Errorf("%w: %s is a Pebble database with the comparer %q, expected %q", kv.ErrForeign, dir, comparer, comparerName)
	}
	return nil
}

// checkUnmade refuses a directory in which Pebble finds no database, but which has rows: it would
// make a new one there, and remove them. Nothing is written to tables before the marker is.
func checkUnmade(dir string, names []string) error {
	for _, name := range names {
		switch path.Ext(name) {
		case ".sst", ".blob":
			return fmt.Errorf("kv/pebble: open %s: the store is damaged: it has the table %q, but no file marker.manifest.*, which says what its tables are; restore that file, which is empty, or a backup", dir, name)
		}
	}
	return nil
}

// ours reports whether a file of this name may lie in a store's directory.
func ours(name string) bool {
	if name == "LOCK" || name == ownerFile || name == CheckpointFolder {
		return true
	}
	for _, prefix := range []string{"MANIFEST-", "OPTIONS-", "marker.", "temporary."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	number, kind, _ := strings.Cut(name, ".")
	if strings.Trim(number, "0123456789-") != "" {
		return false
	}
	switch kind {
	case "log", "sst", "blob", "dbtmp":
		return true
	}
	return false
}

// comparerOf reads the comparer's name from an options file; "" if it names none,
// having been cut short by a crash.
func comparerOf(fsys vfs.FS, path string) (string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "comparer="); ok {
			return name, nil
		}
	}
	return "", nil
}

// directoryLock is the exclusive right to a store's directory. Taking it changes
// no file there; signing it does.
type directoryLock struct {
	*lsm.Lock
	fs   vfs.FS
	path string // of the owner file
}

func lockDirectory(fsys vfs.FS, dir string) (*directoryLock, error) {
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("kv/pebble: %w", located(dir, nameFull(err)))
	}
	path := fsys.PathJoin(dir, ownerFile)
	lock, err := lsm.LockDirectory(dir, fsys)
	if notOpened := (*fs.PathError)(nil); errors.As(err, &notOpened) {
		return nil, fmt.Errorf("kv/pebble: %w", located(dir, err))
	}
	// The system refuses a lock to other processes only. One with the ID of this process has it in another namespace.
	if errors.Is(err, syscall.EAGAIN) {
		return nil, fmt.Errorf("%w: %s is held by %s, which must be stopped first", kv.ErrInUse, dir, owner(fsys, path, "process %d of another container or machine"))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s is held by %s (%v)", kv.ErrInUse, dir, owner(fsys, path, "this process, %d"), err)
	}
	return &directoryLock{Lock: lock, fs: fsys, path: path}, nil
}

// Lock takes the exclusive right to a store's directory, without opening the store. The
// directory may be renamed before the lock is released by closing it.
func Lock(dir string) (io.Closer, error) { return lockOnly(vfs.Default, dir) }

func lockOnly(fsys vfs.FS, dir string) (io.Closer, error) {
	lock, err := lockDirectory(fsys, dir)
	if err != nil {
		return nil, advised(err)
	}
	return lock.Lock, nil
}

// LockToReplace is Lock for a caller that removes the store or puts another one in its place. It removes copies that were left by
// processes that were killed. The error is a kv.ErrCheckpoint while there are others, which would vanish with the directory.
func LockToReplace(dir string) (io.Closer, error) {
	lock, err := Lock(dir)
	if err != nil {
		return nil, err
	}
	kept, err := newCheckpointPlace(vfs.Default, dir).clear()
	if kept != nil {
		err = fmt.Errorf("%w, which must end or be stopped first", kept)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// sign writes the owner file.
func (l *directoryLock) sign() error { return writeID(l.fs, l.path) }

// writeID writes the ID of this process to a file.
func writeID(fsys vfs.FS, path string) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	return errors.Join(err, f.Close())
}

func (l *directoryLock) release() error {
	err := l.fs.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Close())
}

// owner describes the process named in an owner file as far as it can be read; same is the format for one that has
// the ID of this process.
func owner(fsys vfs.FS, path, same string) string {
	const unknown = "another process"
	f, err := fsys.Open(path)
	if err != nil {
		return unknown
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return unknown
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil || pid <= 0:
		return unknown
	case pid == os.Getpid():
		return fmt.Sprintf(same, pid)
	}
	return fmt.Sprintf("process %d", pid)
}
