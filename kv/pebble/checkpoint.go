package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// CheckpointFolder is the name of the folder within the store's directory that holds copies of the store. There, their files are
// hard links to the store's, unless the filesystem has none. For each purpose it has
//
//	PURPOSE/      the copy
//	PURPOSE.lock  locked by the process to which the copy belongs, until it is released
//	PURPOSE.pid   the ID of that process, for messages only
//
// The lock ends with its process. So a copy whose lock is free was left by a process that was killed. Copies are made only by
// the process that has the store open, and those that were left are removed only by one that has it open or its directory
// locked. A copy is released by its owner, which need not have either.
const (
	CheckpointFolder = "checkpoint"
	claimSuffix      = ".lock"
	claimantSuffix   = ".pid"
)

// checkpointPlace is where copies of a store are made.
type checkpointPlace struct {
	fs  vfs.FS
	dir string
}

func newCheckpointPlace(fsys vfs.FS, store string) checkpointPlace {
	return checkpointPlace{fs: fsys, dir: fsys.PathJoin(store, CheckpointFolder)}
}

// claim is the right to the copy for a purpose.
type claim struct {
	place checkpointPlace
	path  string // of the copy
	lock  io.Closer
}

func isPurpose(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == ""
}

// take claims the copy for a purpose, which is then to be made, or returns kv.ErrCheckpoint.
func (p checkpointPlace) take(purpose string) (*claim, error) {
	if !isPurpose(purpose) {
		return nil, fmt.Errorf("kv/pebble: invalid purpose %q of a copy (want lower-case letters)", purpose)
	}
	c, err := p.claim(purpose)
	if err != nil {
		return nil, err
	}
	err = p.fs.RemoveAll(c.path)
	if err == nil {
		err = writeID(p.fs, c.path+claimantSuffix)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kv/pebble: copy to %s: %w", c.path, nameFull(err)), c.release())
	}
	return c, nil
}

// claim locks the copy for a purpose. The error is a kv.ErrCheckpoint if it belongs to somebody. The caller has the store
// open or its directory locked, so nobody else makes a lock file meanwhile, but the last owner may be removing it.
func (p checkpointPlace) claim(purpose string) (*claim, error) {
	c := &claim{place: p, path: p.fs.PathJoin(p.dir, purpose)}
	for {
		if err := p.fs.MkdirAll(p.dir, 0o755); err != nil {
			return nil, fmt.Errorf("kv/pebble: %w", nameFull(err))
		}
		lock, err := p.fs.Lock(c.path + claimSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the folder is gone with the last copy
		}
		if notOpened := (*fs.PathError)(nil); errors.As(err, &notOpened) {
			return nil, fmt.Errorf("kv/pebble: %w", nameFull(err))
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s belongs to %s (%v)", kv.ErrCheckpoint, c.path, owner(p.fs, c.path+claimantSuffix, "process %d"), err)
		}
		if _, err = p.fs.Stat(c.path + claimSuffix); err == nil {
			c.lock = lock
			return c, nil
		}
		if err = errors.Join(ignoreGone(err), lock.Close()); err != nil {
			return nil, fmt.Errorf("kv/pebble: %w", err)
		}
	}
}

// release removes the copy, and the folder of all copies with the last one.
func (c *claim) release() error {
	err := errors.Join(c.place.fs.RemoveAll(c.path), ignoreGone(c.place.fs.Remove(c.path+claimantSuffix)))
	// A process that locks the file next sees that it has lost its name.
	refused := c.place.fs.Remove(c.path + claimSuffix)
	if err := errors.Join(err, c.lock.Close()); err != nil {
		return fmt.Errorf("kv/pebble: remove the copy %s: %w", c.path, err)
	}
	if refused != nil {
		_ = c.place.fs.Remove(c.path + claimSuffix) // Windows removes no open files, and none that the next process has locked
	}
	_ = c.place.fs.Remove(c.place.dir) // fails while it has others
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clear removes the copies that were left by processes that were killed. kept is a kv.ErrCheckpoint if there are others. The
// caller has the store open, or its directory locked.
func (p checkpointPlace) clear() (kept, err error) {
	names, err := p.fs.List(p.dir)
	if err != nil {
		return nil, ignoreGone(err)
	}
	for _, name := range names {
		purpose := strings.TrimSuffix(strings.TrimSuffix(name, claimSuffix), claimantSuffix)
		_, err := p.fs.Stat(p.fs.PathJoin(p.dir, purpose+claimSuffix))
		switch {
		case err == nil && isPurpose(purpose):
			var c *claim
			if c, err = p.claim(purpose); errors.Is(err, kv.ErrCheckpoint) {
				kept, err = err, nil
			} else if err == nil {
				err = c.release()
			}
		case err == nil || errors.Is(err, fs.ErrNotExist): // nobody has claimed it, and a full disk takes no new lock file
			err = p.fs.RemoveAll(p.fs.PathJoin(p.dir, name))
		}
		if err != nil {
			return nil, fmt.Errorf("remove an earlier checkpoint: %w", err)
		}
	}
	if kept == nil {
		_ = p.fs.Remove(p.dir)
	}
	return kept, nil
}

// Checkpoint implements kv.Checkpointer. All tables are hard links, so it takes
// milliseconds and no space, until the store replaces them. On a filesystem without hard links they are copied.
func (s *Store) Checkpoint(ctx context.Context, purpose string) (dir string, release func() error, err error) {
	if err := s.begin(ctx); err != nil {
		return "", nil, err
	}
	c, err := s.take(purpose)
	if err != nil {
		return "", nil, err
	}
	if err := s.guard.run(func() error { return s.checkpoint(c.path) }); err != nil {
		return "", nil, errors.Join(fmt.Errorf("kv/pebble: copy to %s: %w", c.path, nameFull(err)), c.release())
	}
	return c.path, sync.OnceValue(c.release), nil
}

// takenPurposes are those for which a store has made copies since it was opened. Other processes make none meanwhile.
type takenPurposes struct {
	mu       sync.Mutex
	purposes map[string]bool // guarded by mu
}

// take is [checkpointPlace.take] that remembers the purpose.
func (s *Store) take(purpose string) (*claim, error) {
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	c, err := s.place.take(purpose)
	if err == nil {
		if s.taken.purposes == nil {
			s.taken.purposes = make(map[string]bool)
		}
		s.taken.purposes[purpose] = true
	}
	return c, err
}

// CopiedElsewhere implements kv.Checkpointer.
func (s *Store) CopiedElsewhere() error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	s.taken.mu.Lock() // so that no copy is taken for one of another process before its purpose is remembered
	defer s.taken.mu.Unlock()
	names, err := s.place.fs.List(s.place.dir)
	if err != nil {
		return ignoreGone(err)
	}
	for _, name := range names {
		purpose, isLock := strings.CutSuffix(name, claimSuffix)
		if !isLock || !isPurpose(purpose) || s.taken.purposes[purpose] {
			continue
		}
		c, err := s.place.claim(purpose)
		switch {
		case errors.Is(err, kv.ErrCheckpoint):
			return fmt.Errorf("%w, which must end or be stopped first", err)
		case err == nil: // its process was killed
			err = c.release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) checkpoint(dir string) error {
	if s.bulk {
		if err := s.db.Flush(); err != nil {
			return err
		}
	}
	return s.db.Checkpoint(dir, lsm.WithFlushedWAL())
}
