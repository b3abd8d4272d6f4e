package pebble

import (
	"context"
	"fmt"
	"iter"

	"ashlar/kv"
)

// checkEvery is the number of rows between two looks at the context.
const checkEvery = 1024

// Walk implements kv.Store. Rows come partition by partition, in the order of
// the partitions' bytes; within one they ascend in List tables and descend in
// Versions tables.
func (s *Store) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		if err := s.walk(ctx, t, from, yield); err != nil {
			yield(kv.Row{}, err)
		}
	}
}

func (s *Store) walk(ctx context.Context, t *kv.Table, from uint64, yield func(kv.Row, error) bool) (err error) {
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
	n := 0
	for ok := it.SeekGE([]byte{t.ID, prefixEnd}); ok && it.Key()[0] == t.ID; ok = it.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key := it.Key()
		sort := sortOf(t.Kind, key)
		if sort < from {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("kv/pebble: walk %s: %w", t.Name, err)
		}
		if !yield(kv.Row{Partition: partitionOf(key), Sort: sort, Value: value}, nil) {
			stopped = true
			return nil
		}
	}
	return nil
}

// Compact implements kv.Store.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.guard.run(func() error { return s.compact(ctx) }); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("kv/pebble: compact: %w", err)
	}
	return s.pool.advance()
}

func (s *Store) compact(ctx context.Context) error {
	if err := s.db.Flush(); err != nil {
		return err
	}
	last := appendPrefix(nil, 0xff, make([]byte, kv.MaxPartition))
	for i := range last[1 : len(last)-1] {
		last[1+i] = 0xff
	}
	return s.db.Compact(ctx, []byte{pointerTable, prefixEnd}, immediateSuccessor(nil, last), true)
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
			DiskBytes:   int64(m.DiskSpaceUsage()),
			MemoryBytes: m.BlockCache.Size + m.FileCache.Size + int64(m.MemTable.Size+m.MemTable.ZombieSize),
			CacheHits:   m.BlockCache.Hits,
			CacheMisses: m.BlockCache.Misses,
			Backlog:     int64(m.Compact.EstimatedDebt),
		})
		return nil
	})
	var now kv.Stats
	if last := s.stats.Load(); last != nil {
		now = *last
	}
	if usage, err := s.space.fs.GetDiskUsage(s.space.path); err == nil {
		now.FreeBytes = int64(usage.AvailBytes)
	}
	now.Refused = s.writable()
	return now
}
