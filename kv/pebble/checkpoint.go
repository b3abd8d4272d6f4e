package pebble

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkpointFolder is the folder within the store's directory that holds copies of the store, in
// folders named by their purpose. There, their files can always be hard links to the store's.
const checkpointFolder = "checkpoint"

// checkpointPlace is where copies of a store are made.
type checkpointPlace struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex
	taken map[string]bool // guarded by mu; the purposes whose copy has not been released
}

func newCheckpointPlace(o Options) *checkpointPlace {
	return &checkpointPlace{fs: o.FS, dir: o.FS.PathJoin(o.Path, checkpointFolder), taken: make(map[string]bool)}
}

// take reserves the folder of a purpose, or returns kv.ErrCheckpoint.
func (p *checkpointPlace) take(purpose string) (dir string, err error) {
	if purpose == "" || strings.Trim(purpose, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", fmt.Errorf("kv/pebble: invalid purpose %q of a copy (want lower-case letters)", purpose)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	dir = p.fs.PathJoin(p.dir, purpose)
	if p.taken[purpose] {
		return "", fmt.Errorf("kv/pebble: copy %s: %w", dir, kv.ErrCheckpoint)
	}
	if err := p.remove(dir); err != nil {
		return "", err
	}
	p.taken[purpose] = true
	return dir, nil
}

// release removes the copy for a purpose, and the folder of all copies with the last one.
func (p *checkpointPlace) release(purpose string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, purpose)
	if len(p.taken) == 0 {
		return p.clear()
	}
	return p.remove(p.fs.PathJoin(p.dir, purpose))
}

// clear removes all copies, such as those that were left by a process that was killed.
func (p *checkpointPlace) clear() error { return p.remove(p.dir) }

func (p *checkpointPlace) remove(dir string) error {
	if err := p.fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove an earlier checkpoint: %w", err)
	}
	return nil
}

// Checkpoint implements kv.Checkpointer. All tables are hard links, so it takes
// milliseconds and no space, until the store replaces them.
func (s *Store) Checkpoint(ctx context.Context, purpose string) (dir string, release func() error, err error) {
	if err := s.begin(ctx); err != nil {
		return "", nil, err
	}
	if dir, err = s.place.take(purpose); err != nil {
		return "", nil, err
	}
	release = func() error { return s.place.release(purpose) }
	if err := s.guard.run(func() error { return s.checkpoint(dir) }); err != nil {
		return "", nil, errors.Join(fmt.Errorf("kv/pebble: copy to %s: %w", dir, nameFull(err)), release())
	}
	return dir, release, nil
}

func (s *Store) checkpoint(dir string) error {
	if s.bulk {
		if err := s.db.Flush(); err != nil {
			return err
		}
	}
	return s.db.Checkpoint(dir, lsm.WithFlushedWAL())
}
