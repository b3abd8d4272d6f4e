package cassandra

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"sync"

	"ashlar/kv"
)

// A partition of kv is stored in parts, each a partition of Cassandra's. Nearly all have
// one, part 0. When the last part is large enough, the writer begins another one at the
// sort key of the row that it is about to write:
//
//	part 0              part 1              part 2
//	... 17 25 30   |    41 42 50 ... 99  |  105 ...
//	               start 41              start 105
//
// The table ashlar_splits has the starts, and decides. Each part also has the start of the
// next one in its static column until, which comes with every row that is read. It tells a
// reader that does not know of the next part to look into ashlar_splits. So most reads
// take one round trip, and those of a reader that does not know the parts yet take three.
//
// Cassandra gives static columns with rows only. So part 0 of a partition with several parts
// has a row with sort key 0 in any case: if there is no such row, its value is absent. This
// mark is not a row of the store.
//
// The mark and until are written first, then an announcement of the part, then the start, then rows.
// After a crash in between, a start without rows, or an until without a start, does no harm: readers go
// back to the part before. But one replica may have a start that the next writer does not see. That one
// would put rows into the part before, and who sees the start would not find them. So it begins the
// parts that are announced: before a start is sent, a quorum has the announcement.
//
// Only the one writer of a store splits, because it must know the parts of all partitions:
// it reads them when it opens the store.

// splits are the known starts of parts 1, 2, ... of partitions that have several.
type splits struct {
	mu       sync.RWMutex
	starts   map[string][]uint64 // guarded by mu; by partitionName
	complete bool                // no other partition is split
}

// maxKnownSplits bounds the partitions of which a reader remembers the parts.
const maxKnownSplits = 1 << 16

func (d *splits) init() { d.starts = map[string][]uint64{} }

// partitionName names a partition of a store.
func partitionName(t *kv.Table, partition []byte) string { return string(t.ID) + string(partition) }

// known returns the starts of a partition's parts, and whether there are no others.
func (d *splits) known(t *kv.Table, partition []byte) (starts []uint64, complete bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if len(d.starts) == 0 {
		return nil, d.complete
	}
	return d.starts[partitionName(t, partition)], d.complete
}

// set records the starts of a partition's parts.
func (d *splits) set(t *kv.Table, partition []byte, starts []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.complete && len(d.starts) >= maxKnownSplits {
		clear(d.starts)
	}
	d.starts[partitionName(t, partition)] = starts
}

// partOf returns the part that has the rows with a sort key.
func partOf(starts []uint64, sort uint64) int {
	i, found := slices.BinarySearch(starts, sort)
	if found {
		return i + 1
	}
	return i
}

// announced is in place of the ID of a table in ashlar_splits: the row announces a part. No table has this ID.
const announced = 0

// announcement is a part that may have begun.
type announcement struct {
	table     byte
	partition []byte
	part      int
	start     int64
}

// loadSplits reads the parts of all partitions, and begins those that the writer before has announced. From then on
// this store alone adds some.
func (s *Store) loadSplits(ctx context.Context) error {
	starts := map[string][]uint64{}
	var announcements []announcement
	err := s.cluster.retry(ctx, s.cluster.config.readPatience, func(ctx context.Context) error {
		clear(starts)
		announcements = nil
		rows := s.cluster.session.Query("SELECT tbl, p, i, start FROM "+tableSplits+" WHERE store = ?", s.id).IterContext(ctx)
		var table, i int
		var p []byte
		for start := int64(0); rows.Scan(&table, &p, &i, &start); {
			if table == announced && len(p) > 0 {
				announcements = append(announcements, announcement{p[0], bytes.Clone(p[1:]), i, start})
				continue
			}
			name := string(byte(table)) + string(p)
			starts[name] = append(starts[name], sortOf(start)) // ascending by i
		}
		return rows.Close()
	})
	if err != nil {
		return err
	}
	for _, a := range announcements {
		name := string(a.table) + string(a.partition)
		if a.part != len(starts[name])+1 {
			continue // it has begun
		}
		if err := s.holdLease(ctx); err != nil {
			return err
		}
		if err := s.setStart(ctx, int(a.table), a.partition, a.part, a.start); err != nil {
			return err
		}
		starts[name] = append(starts[name], sortOf(a.start))
	}
	// An announcement that this writer does not see must not be acted upon later, when there are rows in the part before.
	forget := s.cluster.session.Query("DELETE FROM "+tableSplits+" WHERE store = ? AND tbl = ?", s.id, announced)
	if err := s.cluster.exec(ctx, s.cluster.config.readPatience, forget.WithTimestamp(s.clock.next())); err != nil {
		return err
	}
	s.splits.mu.Lock()
	defer s.splits.mu.Unlock()
	s.splits.starts, s.splits.complete = starts, true
	return nil
}

// setStart stores a row of ashlar_splits.
func (s *Store) setStart(ctx context.Context, table int, p []byte, part int, start int64) error {
	add := s.cluster.session.Query("INSERT INTO "+tableSplits+" (store, tbl, p, i, start) VALUES (?, ?, ?, ?, ?)", s.id, table, p, part, start)
	return s.cluster.exec(ctx, s.cluster.config.readPatience, add.WithTimestamp(s.clock.next()))
}

// partsOf reads the parts of one partition, and remembers them.
func (s *Store) partsOf(ctx context.Context, t *kv.Table, partition []byte) ([]uint64, error) {
	var starts []uint64
	err := s.cluster.retry(ctx, s.cluster.config.readPatience, func(ctx context.Context) error {
		starts = nil
		rows := s.query("SELECT start FROM "+tableSplits+" WHERE store = ? AND tbl = ? AND p = ?", s.id, int(t.ID), notNil(partition)).IterContext(ctx)
		for start := int64(0); rows.Scan(&start); {
			starts = append(starts, sortOf(start))
		}
		return rows.Close()
	})
	if err == nil && len(starts) > 0 {
		s.splits.set(t, partition, starts)
	}
	return starts, err
}

// samples is how many samples, on average, make up the size at which a part is split.
const samples = 64

// sampled returns how many bytes a row counts for in the size of its part. Most rows count
// for nothing, and a few for many more than they have, so that the sum is right and few
// rows cost a statement. The same row always gives the same result.
func (c *Cluster) sampled(r *row) int64 {
	step := max(c.config.SplitBytes/samples, 1)
	size := r.size()
	if size >= step {
		return size
	}
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64([]byte{r.table.ID}, r.sort)) // never fails
	_, _ = h.Write(r.partition)
	if int64(mix(h.Sum64())%uint64(step)) < size {
		return step
	}
	return 0
}

// mix spreads the bits of a hash (the end of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// mayGrow reports whether a Write of rows counts sizes, and may begin parts. Such Writes follow one
// another: a part that one begins must not start below a row that another puts into the part before.
func (s *Store) mayGrow(rows []row) bool {
	return !s.shared && slices.ContainsFunc(rows, func(r row) bool { return !r.table.Transient })
}

// grow counts the sampled rows of a batch that is about to be written, and begins new
// parts where the last one is large enough.
func (s *Store) grow(ctx context.Context, rows []row) error {
	for i := range rows {
		r := &rows[i]
		if r.table.Transient {
			continue
		}
		if weight := s.cluster.sampled(r); weight > 0 || s.adding != nil {
			grow := func(ctx context.Context) error { return s.growPart(ctx, r, weight) }
			if err := s.cluster.retry(ctx, s.cluster.patience(ctx), grow); err != nil {
				return err
			}
		}
	}
	return nil
}

// growPart adds to the size of the part that a row belongs to, or begins a new part with
// the row.
func (s *Store) growPart(ctx context.Context, r *row, weight int64) error {
	if err := s.holdLease(ctx); err != nil {
		return err
	}
	if s.adding != nil {
		if err := s.addPart(ctx, *s.adding); err != nil || weight == 0 {
			return err
		}
	}
	c := s.cluster
	st := c.table(r.table)
	starts, _ := s.splits.known(r.table, r.partition)
	part := partOf(starts, r.sort)
	var newest, size int64
	err := c.scan(ctx, c.session.Query(st.size, s.id, r.partition, part), &newest, &size)
	empty := errors.Is(err, kv.ErrNotFound)
	if err != nil && !empty {
		return err
	}
	size += weight
	if empty || part < len(starts) || size < c.config.SplitBytes || r.sort <= sortOf(newest) {
		return c.exec(ctx, c.config.readPatience, c.session.Query(st.setSize, size, s.id, r.partition, part).WithTimestamp(s.clock.next()))
	}
	return s.addPart(ctx, newPart{r.table, r.partition, append(slices.Clip(starts), r.sort)})
}

// newPart is the last part of a partition, with the starts of all.
type newPart struct {
	table     *kv.Table
	partition []byte
	starts    []uint64
}

// addPart begins a part. If that ends without an answer, readers may find the start. Then it is done again before other
// rows are put into partitions that may grow: they would go to the part before, where readers would not look.
func (s *Store) addPart(ctx context.Context, n newPart) error {
	s.adding = &n
	c := s.cluster
	st := c.table(n.table)
	part := len(n.starts)
	start := sortColumn(n.starts[part-1])
	if part == 1 {
		if err := s.mark(ctx, st, n.partition); err != nil {
			return err
		}
	}
	if err := c.exec(ctx, c.config.readPatience, c.session.Query(st.setUntil, start, s.id, n.partition, part-1).WithTimestamp(s.clock.next())); err != nil {
		return err
	}
	if err := s.setStart(ctx, announced, append([]byte{n.table.ID}, n.partition...), part, start); err != nil {
		return err
	}
	if err := s.setStart(ctx, int(n.table.ID), n.partition, part, start); err != nil {
		return err
	}
	s.splits.set(n.table, n.partition, n.starts)
	s.adding = nil
	return nil
}

// copied returns a copy of what a caller wants to be written, and may change afterwards: when a write
// returns, the driver may be about to send it to another node, because the first was slow. It is
// not nil.
func copied(b []byte) []byte { return append([]byte{}, b...) }

// notNil returns b, or an empty slice: the driver takes a nil one for an absent value.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
