package tip

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"ashlar/kv"
)

// reader overlays the rows of a branch on those below. It implements [kv.Reader].
type reader struct {
	below  kv.Reader
	branch *Branch
}

// maxKey is the maximum length of a key of a layer.
const maxKey = 1 + kv.MaxPartition

// lookup is a partition to search for in the layers.
type lookup struct {
	key  []byte
	hash uint64
}

// lookUp returns the lookup of a partition. It writes the key into room, which the caller
// provides to avoid an allocation.
func lookUp(room []byte, t *kv.Table, partition []byte) lookup {
	key := append(append(room[:0], t.ID), partition...)
	return lookup{key, hashKey(key)}
}

// settledSort returns the greatest sort key that a row of a settled block can have.
func (r *reader) settledSort(t *kv.Table) uint64 {
	return (r.branch.settled.Number+1)<<t.IndexBits - 1
}

// get returns the value of a row in the branch.
func (r *reader) get(l lookup, sort uint64) ([]byte, bool) {
	for _, layer := range r.branch.layers {
		for _, row := range layer.find(l.hash, l.key) {
			if row.sort == sort {
				return row.value, true
			}
		}
	}
	return nil, false
}

// newest returns the row in the branch with the greatest sort key at or below at.
func (r *reader) newest(t *kv.Table, l lookup, at uint64) (newest row, found bool) {
	for _, layer := range r.branch.layers {
		if t.Kind == kv.Versions && layer.oldest > at {
			continue
		}
		rows := layer.find(l.hash, l.key)
		for i := len(rows) - 1; i >= 0; i-- {
			if rows[i].sort > at {
				continue
			}
			if !found || rows[i].sort > newest.sort {
				newest, found = rows[i], true
			}
			break
		}
		if found && t.Kind == kv.Versions {
			break // lower layers have older versions only
		}
	}
	return newest, found
}

// Get implements [kv.Reader].
func (r *reader) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	if sort <= r.settledSort(t) {
		value, err := r.below.Get(ctx, t, partition, sort, dst)
		if !errors.Is(err, kv.ErrNotFound) {
			return value, err
		}
	} else if err := ctx.Err(); err != nil {
		return dst, err
	}
	var room [maxKey]byte
	if value, ok := r.get(lookUp(room[:], t, partition), sort); ok {
		return append(dst, value...), nil
	}
	return dst, kv.ErrNotFound
}

// Newest implements [kv.Reader].
func (r *reader) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if err := ctx.Err(); err != nil {
		return dst, 0, err
	}
	settled := r.settledSort(t)
	if t.Kind == kv.Versions && at <= settled {
		return r.below.Newest(ctx, t, partition, at, dst)
	}
	var room [maxKey]byte
	row, found := r.newest(t, lookUp(room[:], t, partition), at)
	if found && row.sort > settled {
		return append(dst, row.value...), row.sort, nil
	}
	value, sort, err := r.below.Newest(ctx, t, partition, min(at, settled), dst)
	if found && (errors.Is(err, kv.ErrNotFound) || err == nil && row.sort > sort) {
		return append(value[:len(dst)], row.value...), row.sort, nil
	}
	return value, sort, err
}

// Descend implements [kv.Reader].
func (r *reader) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	settled := r.settledSort(t)
	if at > settled {
		var room [maxKey]byte
		l := lookUp(room[:], t, partition)
		for _, layer := range r.branch.layers { // newest first
			rows := layer.find(l.hash, l.key)
			for i := len(rows) - 1; i >= 0 && rows[i].sort > settled; i-- {
				if rows[i].sort > at {
					continue
				}
				if enough, err := found(rows[i].sort, rows[i].value); enough || err != nil {
					return err
				}
			}
		}
	}
	return r.below.Descend(ctx, t, partition, min(at, settled), found)
}

// GetMany implements [kv.Reader].
func (r *reader) GetMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, value []byte) error) error {
	var buffer []byte
	for i, key := range keys {
		value, err := r.Get(ctx, t, key.Partition, key.Sort, buffer[:0])
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err == nil {
			err = found(i, value)
		}
		if err != nil {
			return err
		}
		buffer = value
	}
	return nil
}

// NewestMany implements [kv.Reader].
func (r *reader) NewestMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, sort uint64, value []byte) error) error {
	settled := r.settledSort(t)
	below := make([]kv.Key, 0, len(keys))
	places := make([]int, 0, len(keys)) // indices in keys of the keys in below
	over := make(map[int]row)           // rows of the branch; the store may have newer ones
	var room [maxKey]byte
	for i, key := range keys {
		if t.Kind != kv.Versions || key.Sort > settled {
			row, ok := r.newest(t, lookUp(room[:], t, key.Partition), key.Sort)
			if ok && row.sort > settled {
				if err := found(i, row.sort, row.value); err != nil {
					return err
				}
				continue
			}
			if ok {
				over[i] = row
			}
		}
		below = append(below, kv.Key{Partition: key.Partition, Sort: min(key.Sort, settled)})
		places = append(places, i)
	}
	err := r.below.NewestMany(ctx, t, below, func(j int, sort uint64, value []byte) error {
		i := places[j]
		if row, ok := over[i]; ok && row.sort > sort {
			return nil
		}
		delete(over, i)
		return found(i, sort, value)
	})
	if err != nil {
		return err
	}
	for i, row := range over {
		if err := found(i, row.sort, row.value); err != nil {
			return err
		}
	}
	return nil
}

// Scan implements [kv.Reader].
func (r *reader) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	var rows []row
	var room [maxKey]byte
	l := lookUp(room[:], t, partition)
	for _, layer := range r.branch.layers {
		for _, row := range layer.find(l.hash, l.key) {
			if row.sort >= from && row.sort <= to {
				rows = append(rows, row)
			}
		}
	}
	below := r.below.Scan(ctx, t, partition, from, min(to, r.settledSort(t)))
	if len(rows) == 0 {
		return below
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.sort, b.sort) })
	rows = slices.CompactFunc(rows, func(a, b row) bool { return a.sort == b.sort })
	return &cursor{below: below, over: rows}
}

// Prefetch implements [kv.Prefetcher], for the rows below the branch.
func (r *reader) Prefetch(ctx context.Context, wants []kv.Want) {
	below, ok := r.below.(kv.Prefetcher)
	if !ok {
		return
	}
	var room [maxKey]byte
	settled := make([]kv.Want, 0, len(wants))
	for _, w := range wants {
		last := r.settledSort(w.Table)
		if w.Newest == 0 && w.From > last {
			continue
		}
		if w.Newest == 1 && w.To > last {
			if row, found := r.newest(w.Table, lookUp(room[:], w.Table, w.Partition), w.To); found && row.sort > last {
				continue
			}
		}
		w.To = min(w.To, last)
		settled = append(settled, w)
	}
	below.Prefetch(ctx, settled)
}

// Pointer implements [kv.Reader].
func (r *reader) Pointer(ctx context.Context, name string) ([]byte, error) {
	return r.below.Pointer(ctx, name)
}

// cursor merges the settled rows with those of the branch. If both have a row, the values
// are equal.
type cursor struct {
	below   kv.Cursor // closed at its end
	over    []row     // from the current position on
	started bool
	onBelow bool // whether below is at a row
	closed  bool
}

// Next implements [kv.Cursor].
func (c *cursor) Next() bool {
	if c.closed {
		return false
	}
	if !c.started {
		c.moved(c.below.Next())
		return c.on()
	}
	if !c.on() {
		return false
	}
	now := c.Sort()
	if c.onBelow && c.below.Sort() == now {
		c.moved(c.below.Next())
	}
	if len(c.over) > 0 && c.over[0].sort == now {
		c.over = c.over[1:]
	}
	return c.on()
}

// Seek implements [kv.Cursor].
func (c *cursor) Seek(sort uint64) bool {
	if c.closed {
		return false
	}
	if !c.started || c.onBelow {
		c.moved(c.below.Seek(sort))
	}
	for len(c.over) > 0 && c.over[0].sort < sort {
		c.over = c.over[1:]
	}
	return c.on()
}

// moved records whether the cursor below is at a row. If that cursor has failed, settled
// rows may be missing, so the branch's rows are not returned either.
func (c *cursor) moved(onBelow bool) {
	c.started, c.onBelow = true, onBelow
	if !onBelow && c.below.Close() != nil { // Close reports the error again
		c.over = nil
	}
}

// on reports whether the cursor is at a row. A cursor that has failed is not.
func (c *cursor) on() bool { return c.onBelow || len(c.over) > 0 }

// isBelow reports whether the current row is that of the cursor below.
func (c *cursor) isBelow() bool {
	return c.onBelow && (len(c.over) == 0 || c.below.Sort() <= c.over[0].sort)
}

// Sort implements [kv.Cursor].
func (c *cursor) Sort() uint64 {
	if c.isBelow() {
		return c.below.Sort()
	}
	return c.over[0].sort
}

// Value implements [kv.Cursor].
func (c *cursor) Value() []byte {
	if c.isBelow() {
		return c.below.Value()
	}
	return c.over[0].value
}

// Close implements [kv.Cursor].
func (c *cursor) Close() error {
	c.closed, c.over, c.onBelow = true, nil, false
	return c.below.Close()
}
