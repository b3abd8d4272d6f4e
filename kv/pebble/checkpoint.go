package pebble

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkpointFolder is the folder within the store's directory that holds a copy of the
// store while there is one. There, its files can always be hard links to the store's.
const checkpointFolder = "checkpoint"

// checkpointPlace is where the copy of a store is made.
type checkpointPlace struct {
	fs    vfs.FS
	dir   string
	taken *atomic.Bool // a copy has not been released
}

func newCheckpointPlace(o Options) checkpointPlace {
	return checkpointPlace{fs: o.FS, dir: o.FS.PathJoin(o.Path, checkpointFolder), taken: new(atomic.Bool)}
}

// clear removes a copy that was left by a process that was killed.
func (p checkpointPlace) clear() error {
	if err := p.fs.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove an earlier checkpoint: %w", err)
	}
	return nil
}

// Checkpoint implements kv.Checkpointer. All tables are hard links, so it takes
// milliseconds and no space, until the store replaces them.
func (s *Store) Checkpoint(ctx context.Context) (dir string, release func() error, err error) {
	if err := s.begin(ctx); err != nil {
		return "", nil, err
	}
	if s.place.taken.Swap(true) {
		return "", nil, fmt.Errorf("kv/pebble: copy %s: %w", s.place.dir, kv.ErrCheckpoint)
	}
	release = func() error {
		defer s.place.taken.Store(false)
		return s.place.clear()
	}
	if err := s.guard.run(s.checkpoint); err != nil {
		return "", nil, errors.Join(fmt.Errorf("kv/pebble: copy to %s: %w", s.place.dir, nameFull(err)), release())
	}
	return s.place.dir, release, nil
}

func (s *Store) checkpoint() error {
	if err := s.place.clear(); err != nil {
		return err
	}
	if s.bulk {
		if err := s.db.Flush(); err != nil {
			return err
		}
	}
	return s.db.Checkpoint(s.place.dir, lsm.WithFlushedWAL())
}
