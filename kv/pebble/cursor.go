package pebble

import (
	"context"
	"math"

	"ashlar/kv"
)

// Scan implements kv.Reader.
func (s *Store) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	c := &cursor{store: s, ctx: ctx, table: t, next: from, to: to, done: from > to}
	if c.err = s.begin(ctx); c.err != nil {
		return c
	}
	if c.err = checkRow(t, partition); c.err != nil {
		return c
	}
	if c.reader, c.err = s.pool.get(t); c.err != nil {
		return c
	}
	c.reader.key = appendPrefix(c.reader.key[:0], t.ID, partition)
	c.prefix = len(c.reader.key)
	return c
}

// cursor walks one partition upwards. In a List table that is forward; in a
// Versions table, whose rows are stored newest first, backward.
type cursor struct {
	store  *Store
	ctx    context.Context
	table  *kv.Table
	reader *reader // nil when closed or failed; its key begins with the partition's prefix
	prefix int     // length of that prefix

	next  uint64 // least sort key that the next row may have, while not positioned
	to    uint64
	sort  uint64
	value []byte
	on    bool // at a row
	done  bool // no more rows
	err   error
}

// Next implements kv.Cursor.
func (c *cursor) Next() bool {
	if !c.on {
		return c.Seek(c.next)
	}
	if !c.ready() {
		return false
	}
	if c.table.Kind == kv.Versions {
		return c.land(c.reader.Prev())
	}
	return c.land(c.reader.Next())
}

// Seek implements kv.Cursor.
func (c *cursor) Seek(sort uint64) bool {
	if !c.ready() {
		return false
	}
	if c.on && sort <= c.sort {
		return true
	}
	if sort < c.next {
		sort = c.next
	}
	if sort > c.to {
		return c.land(false)
	}
	r := c.reader
	r.key = appendSuffix(r.key[:c.prefix], c.table.Kind, sort)
	if c.table.Kind == kv.List {
		return c.land(r.seek())
	}
	r.key = increment(r.key, c.prefix)
	return c.land(r.seekBehind())
}

// ready reports whether the cursor may move.
func (c *cursor) ready() bool {
	if c.done || c.err != nil || c.reader == nil {
		c.on = false
		return false
	}
	if c.err = c.ctx.Err(); c.err != nil {
		c.on = false
		return false
	}
	return true
}

// land takes the row at which the reader is now, if it is one of the cursor's.
func (c *cursor) land(valid bool) bool {
	c.on = false
	if valid {
		key := c.reader.Key()
		if inPartition(key, c.reader.key, c.prefix) {
			c.sort = sortOf(c.table.Kind, key)
			c.on = c.sort <= c.to
		}
	}
	if !c.on {
		c.done = true
		c.value = nil
		return false
	}
	if c.value, c.err = c.reader.ValueAndErr(); c.err != nil {
		c.on = false
		return false
	}
	if c.sort == math.MaxUint64 {
		c.next = c.sort
	} else {
		c.next = c.sort + 1
	}
	return true
}

// Sort implements kv.Cursor.
func (c *cursor) Sort() uint64 { return c.sort }

// Value implements kv.Cursor.
func (c *cursor) Value() []byte { return c.value }

// Close implements kv.Cursor.
func (c *cursor) Close() error {
	if c.reader != nil {
		err := c.store.pool.put(c.reader)
		// The reader's error ended the rows, even if ctx is done since. It also names the error of a value, but not that of ctx.
		if err != nil && (c.err == nil || c.ctx.Err() == nil) {
			c.err = err
		}
		c.reader = nil
	}
	c.on, c.done, c.value = false, true, nil
	return c.err
}
