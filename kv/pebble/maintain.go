package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
)

// checkEvery is the number of rows between two looks at the context.
const checkEvery = 1024

// estimateEvery is the number of rows between two estimates of a walk's progress.
const estimateEvery = 1 << 15

// Walk implements kv.Store. Rows come partition by partition, in the order of
// the partitions' bytes; within one they ascend in List tables and descend in
// Versions tables.
func (s *Store) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return s.WalkAfter(ctx, t, nil, from)
}

// WalkAfter implements kv.Store.
func (s *Store) WalkAfter(ctx context.Context, t *kv.Table, after []byte, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		if err := s.walk(ctx, t, after, from, yield); err != nil {
			yield(kv.Row{}, err)
		}
	}
}

func (s *Store) walk(ctx context.Context, t *kv.Table, after []byte, from uint64, yield func(kv.Row, error) bool) (err error) {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := checkTable(t); err != nil {
		return err
	}
	it, _, err := s.pool.open(t)
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		if cerr := it.Close(); cerr != nil && err == nil && !stopped {
			err = fmt.Errorf("kv/pebble: walk %s: %w", t.Name, cerr)
		}
	}()
	first := []byte{t.ID, prefixEnd}
	if after != nil {
		first = immediateSuccessor(nil, appendPrefix(nil, t.ID, after))
	}
	share := s.shares(t)
	walked, n := 0.0, 0
	for ok := it.SeekGE(first); ok && it.Key()[0] == t.ID; ok = it.Next() {
		key := it.Key()
		if n++; n%checkEvery == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if n%estimateEvery == 0 {
			walked = max(walked, share(key))
		}
		sort := sortOf(t.Kind, key)
		if sort < from {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("kv/pebble: walk %s: %w", t.Name, err)
		}
		if !yield(kv.Row{Partition: partitionOf(key), Sort: sort, Value: value, Walked: walked}, nil) {
			stopped = true
			return nil
		}
	}
	return nil
}

// shares returns a function that estimates the share of a table before a key, by the sizes
// of files. Rows in memory do not count.
func (s *Store) shares(t *kv.Table) func(key []byte) float64 {
	first := []byte{t.ID, prefixEnd}
	all := sync.OnceValue(func() float64 {
		size, err := s.db.EstimateDiskUsage(first, lastPrefix(t.ID))
		if err != nil {
			return 0
		}
		return float64(size)
	})
	return func(key []byte) float64 {
		size, err := s.db.EstimateDiskUsage(first, key)
		if err != nil || all() == 0 {
			return 0
		}
		return min(1, float64(size)/all())
	}
}

// lastPrefix returns the greatest prefix that a table can have.
func lastPrefix(table byte) []byte {
	last := appendPrefix(nil, table, make([]byte, kv.MaxPartition))
	for i := range last[1 : len(last)-1] {
		last[1+i] = 0xff
	}
	return last
}

// Pointers implements kv.Store.
func (s *Store) Pointers(ctx context.Context) (_ map[string][]byte, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	it, _, err := s.pool.open(pointers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	all := map[string][]byte{}
	for ok := it.SeekGE([]byte{pointerTable}); ok && it.Key()[0] == pointerTable; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, fmt.Errorf("kv/pebble: read pointers: %w", err)
		}
		key := it.Key()
		all[string(key[1:len(key)-1])] = bytes.Clone(value)
	}
	return all, nil
}

// Compact implements kv.Store.
func (s *Store) Compact(ctx context.Context, tables ...*kv.Table) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, t := range tables {
		if err := checkTable(t); err != nil {
			return err
		}
	}
	if err := s.guard.run(func() error { return s.compact(ctx, tables) }); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("kv/pebble: compact: %w", err)
	}
	return s.pool.advance()
}

func (s *Store) compact(ctx context.Context, tables []*kv.Table) error {
	if err := s.db.Flush(); err != nil {
		return err
	}
	for _, t := range tables {
		if err := s.compactTable(ctx, t); err != nil {
			return err
		}
	}
	if len(tables) > 0 {
		return nil
	}
	return s.db.Compact(ctx, []byte{pointerTable, prefixEnd}, immediateSuccessor(nil, lastPrefix(0xff)), true)
}

// sliceBytes is about how much of a table is compacted at once. Tests change it.
var sliceBytes uint64 = 256 << 20

// compactTable compacts a table slice by slice. Pebble completes what it has begun, also if the context ends or the
// store is closed, and the disk needs room for it.
func (s *Store) compactTable(ctx context.Context, t *kv.Table) error {
	from, last := []byte{t.ID, prefixEnd}, immediateSuccessor(nil, lastPrefix(t.ID))
	levels, err := s.db.SSTables()
	if err != nil {
		return err
	}
	var slice uint64
	for _, file := range levels[len(levels)-1] { // the lowest level has nearly everything, in ascending order
		start := file.Smallest.UserKey
		if slice >= sliceBytes && bytes.Compare(start, from) > 0 && bytes.Compare(start, last) < 0 {
			if err := s.db.Compact(ctx, from, start, true); err != nil {
				return err
			}
			from, slice = start, 0
		}
		if start[0] == t.ID {
			slice += file.Size
		}
	}
	return s.db.Compact(ctx, from, last, true)
}

// written returns the bytes that were written to the log and to tables. Without a log,
// Pebble counts what it would have written to it.
func (s *Store) written(m *lsm.Metrics) int64 {
	var bytes uint64
	if !s.bulk {
		bytes = m.WAL.BytesWritten
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		bytes += l.TableBytesFlushed + l.TableBytesCompacted + l.BlobBytesFlushed + l.BlobBytesCompacted
	}
	return int64(bytes)
}

// Stats implements kv.Store.
func (s *Store) Stats() kv.Stats {
	if s.closed.Load() {
		return kv.Stats{}
	}
	// Pebble's metrics wait for a change of the manifest, which may wait for space.
	_ = s.guard.run(func() error {
		m := s.db.Metrics()
		s.stats.Store(&kv.Stats{
			DiskBytes:    int64(m.DiskSpaceUsage()),
			MemoryBytes:  m.BlockCache.Size + m.FileCache.Size + int64(m.MemTable.Size+m.MemTable.ZombieSize),
			CacheHits:    m.BlockCache.Hits,
			CacheMisses:  m.BlockCache.Misses,
			Backlog:      int64(m.Compact.EstimatedDebt),
			WrittenBytes: s.written(m),
		})
		return nil
	})
	var now kv.Stats
	if last := s.stats.Load(); last != nil {
		now = *last
	}
	if usage, err := s.space.fs.GetDiskUsage(s.space.path); err == nil {
		now.FreeBytes = new(int64(usage.AvailBytes))
	}
	now.Refused = s.writable()
	return now
}
