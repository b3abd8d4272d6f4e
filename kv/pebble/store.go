// Package pebble is the embedded engine of kv, on CockroachDB's Pebble: an LSM
// tree in one directory, owned by one process.
//
// It keeps the whole of kv's contract: a Write is atomic, and after a crash the
// store is as it was after some earlier Write. With Options.BulkLoad there is no
// write-ahead log: Sync then writes out the memtables, and a crash goes back to
// the last time that was done, still to a place between two Writes.
//
// Newest and Get cost one seek on an iterator that is taken from a pool; absent
// partitions are mostly answered by bloom filters. Neither allocates, beyond the
// growth of dst. How rows become keys is drawn in keys.go.
//
// After a write fails for good, for instance because the disk is full, every Write and
// Sync returns the cause and kv.ErrFailed, while reads go on. The store must be opened
// again, by another process, to be written.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options say where a store is and what it may use. Of [kv.Options],
//
//   - CacheBytes bounds the cache of uncompressed blocks (DefaultCacheBytes);
//   - BufferBytes is the size of a memtable, of which there are up to four
//     (DefaultMemTableBytes, with BulkLoad DefaultBulkMemTableBytes);
//   - BulkLoad turns the write-ahead log off;
//   - Apart is a table whose rows are in files of their own.
type Options struct {
	kv.Options
	// Path is the directory, made if it does not exist. It must be empty or hold a store.
	Path string
	// FS is the filesystem that Path is on; nil means the disk.
	FS vfs.FS
}

const (
	DefaultCacheBytes        = 128 << 20
	DefaultMemTableBytes     = 16 << 20
	DefaultBulkMemTableBytes = 128 << 20
)

// refreshInterval is how long an idle reader may keep replaced tables from being
// deleted when there are no Writes that would have closed it.
const refreshInterval = 10 * time.Second

// Store is an open store. It implements kv.Store.
type Store struct {
	db       *lsm.DB
	lock     *directoryLock
	pool     *pool
	guard    *guard
	bulk     bool
	closed   atomic.Bool
	pointers sync.Mutex // held while pointers change, from comparing to setting

	stop    context.CancelFunc
	stopped sync.WaitGroup
}

var _ kv.Store = (*Store)(nil)

// Open opens the store in a directory, or makes one there. The error is an
// kv.ErrInUse if another process holds it.
func Open(o Options) (*Store, error) {
	if o.Path == "" {
		return nil, errors.New("kv/pebble: no directory given")
	}
	if o.CacheBytes < 0 || o.BufferBytes < 0 || o.BufferBytes > maxMemTableBytes {
		return nil, fmt.Errorf("kv/pebble: cache of %d and memtables of %d bytes, expected 0 or more and at most %d for a memtable",
			o.CacheBytes, o.BufferBytes, maxMemTableBytes)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := checkDirectory(o.FS, o.Path); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(o.FS, o.Path)
	if err != nil {
		return nil, err
	}
	if err := accept(o, lock); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", o.Path, err), lock.Close())
	}
	s, err := openLocked(o, lock)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kv/pebble: open %s: %w", o.Path, nameFull(err)), lock.release())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.stopped.Go(func() { s.refresh(ctx) })
	return s, nil
}

// openLocked opens the store in a locked directory.
func openLocked(o Options, lock *directoryLock) (*Store, error) {
	if err := lock.sign(); err != nil {
		return nil, err
	}
	g := newGuard(o.Logger)
	config := configure(o, g)
	config.Lock = lock.Lock
	if o.ReadOnly {
		config.ReadOnly, config.FS = true, o.FS
	}
	s, err := openDatabase(o, config, g)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	return s, nil
}

// refresh closes idle readers periodically until ctx is done.
func (s *Store) refresh(ctx context.Context) {
	tick := time.NewTicker(refreshInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.pool.advance(); err != nil {
				s.guard.log.Warn("close idle readers", "err", err)
			}
		}
	}
}

// Close implements kv.Store. Cursors must have been closed before.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	s.stop()
	s.stopped.Wait()
	// A failed store stays as it is, and locked, until its process ends: Pebble's
	// jobs are stuck in it, and waiting for them would be for ever.
	if err := s.guard.err(); err != nil {
		return fmt.Errorf("kv/pebble: close: %w", err)
	}
	errs := []error{s.pool.close()}
	if s.bulk {
		errs = append(errs, s.guard.run(s.db.Flush))
	}
	errs = append(errs, s.guard.run(s.db.Close))
	if s.guard.err() == nil {
		errs = append(errs, s.lock.release())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("kv/pebble: close: %w", err)
	}
	return nil
}
