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
// A store on a disk that is nearly full (Options.Reserve) refuses writes with kv.ErrFull,
// and accepts them again when there is space. So does one that finds the disk full in
// the middle of a write; that write is completed once there is space.
//
// A store whose disk fails in another way stops taking writes: every Write and Sync from
// then on returns the cause and kv.ErrFailed. It has to be opened again, by another
// process, to write. Reads go on in all cases.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
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
//   - Private gives the directory the mode 0700 and its files 0600, unless FS is set;
//   - Tables that are Apart are in files of their own, and compressed lightly.
type Options struct {
	kv.Options
	// Path is the directory, made if it does not exist. It must be empty or hold a store.
	Path string
	// FS is the filesystem that Path is on; nil means the disk.
	FS vfs.FS
	// Reserve is the space in bytes that stays free on the disk; 0: DefaultReserve. On a
	// disk of less than twenty times as much it is a twentieth of the disk.
	Reserve uint64
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
	space    *space
	place    checkpointPlace
	taken    takenPurposes
	bulk     bool
	closed   atomic.Bool
	stats    atomic.Pointer[kv.Stats] // as of the last time that they could be read
	pointers sync.Mutex               // held while pointers change, from comparing to setting

	stop    context.CancelFunc
	stopped sync.WaitGroup
}

var _ kv.Store = (*Store)(nil)

// Open opens the store in a directory, or makes one there. The error is an
// kv.ErrInUse if another process holds it.
func Open(o Options) (*Store, error) {
	s, err := openDirectory(o)
	return s, advised(err)
}

// advised adds to the error of opening or locking a directory what is wanted, if the error is about the process.
func advised(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (want the user to whom the data directory belongs)", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w (want a higher limit of open files: ulimit -n, or LimitNOFILE of systemd)", err)
	case errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w (want a higher limit of open files of all processes together, such as fs.file-max of Linux)", err)
	}
	return err
}

func openDirectory(o Options) (*Store, error) {
	if o.Path == "" {
		return nil, errors.New("kv/pebble: no directory given")
	}
	if o.CacheBytes < 0 || o.BufferBytes < 0 || o.BufferBytes > maxMemTableBytes {
		return nil, fmt.Errorf("kv/pebble: cache of %d and memtables of %d bytes, expected 0 or more and at most %d for a memtable",
			o.CacheBytes, o.BufferBytes, maxMemTableBytes)
	}
	private := o.Private && o.FS == nil && !o.ReadOnly
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if private {
		o.FS = privateFS{o.FS}
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := checkDirectory(o.FS, o.Path); err != nil {
		return nil, err
	}
	if err := checkExists(o); err != nil {
		return nil, fmt.Errorf("kv/pebble: %w", located(o.Path, err))
	}
	lock, err := lockDirectory(o.FS, o.Path)
	if err != nil {
		return nil, err
	}
	if private {
		if err := makePrivate(o.Path); err != nil {
			return nil, errors.Join(fmt.Errorf("kv/pebble: %w", located(o.Path, err)), lock.Close())
		}
	}
	if err := accept(o, lock); err != nil {
		return nil, errors.Join(located(o.Path, err), lock.Close())
	}
	s, err := openLocked(o, lock)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kv/pebble: %w", located(o.Path, needsSpace(o, err))), lock.release())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.stopped.Go(func() { s.refresh(ctx) })
	return s, nil
}

// openLocked opens the store in a locked directory.
func openLocked(o Options, lock *directoryLock) (*Store, error) {
	// What only reads needs no space: without its signature, messages of others name no process.
	if err := lock.sign(); err != nil && !(o.ReadOnly && kv.IsFull(err)) {
		return nil, err
	}
	g := newGuard(o.Logger)
	config := configure(o, g)
	if o.ReadOnly {
		config.ReadOnly, config.FS, config.Lock = true, o.FS, lock.Lock
	}
	place := newCheckpointPlace(o.FS, o.Path)
	if !o.ReadOnly {
		if _, err := place.clear(); err != nil {
			return nil, err
		}
	}
	s, err := openDatabase(o, config, g)
	if err != nil {
		return nil, err
	}
	s.lock, s.place = lock, place
	s.space = &space{fs: o.FS, path: o.Path, reserve: o.Reserve, log: o.Logger}
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
				s.guard.log.Warn("closing idle readers failed", "error", err)
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
	// A failed or full store stays as it is, and locked, until its process ends: Pebble's
	// jobs are stuck in it, and waiting for them would be for ever.
	if _, err := s.guard.problem(); err != nil {
		s.guard.fail(err)
		return fmt.Errorf("kv/pebble: close: %w", err)
	}
	errs := []error{s.pool.close()}
	if s.bulk {
		errs = append(errs, s.guard.run(s.db.Flush))
	}
	errs = append(errs, s.guard.run(s.db.Close))
	if _, err := s.guard.problem(); err != nil {
		s.guard.fail(err) // what waits for space must not go on when this has returned
	} else {
		errs = append(errs, s.lock.release())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("kv/pebble: close: %w", err)
	}
	return nil
}
