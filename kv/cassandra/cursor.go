package cassandra

import (
	"context"
	"math"

	"ashlar/kv"
)

const (
	firstPage = 64      // rows that a cursor reads first
	maxPage   = 1024    // at once
	pageBytes = 4 << 20 // a page that is larger makes the next one smaller
)

// Scan implements kv.Reader.
func (s *Store) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	return s.scan(ctx, s.byQuorum(), t, partition, from, to)
}

func (s *Store) scan(ctx context.Context, how reading, t *kv.Table, partition []byte, from, to uint64) *cursor {
	c := &cursor{store: s, ctx: ctx, how: how, table: t, partition: append([]byte{}, partition...), next: from, to: to, limit: firstPage, done: from > to}
	c.statements, c.err = s.prepare(ctx, t, partition)
	if c.err == nil {
		c.starts, c.certain = s.splits.known(t, c.partition)
	}
	return c
}

// cursor reads the rows of one partition, a page at a time.
type cursor struct {
	store      *Store
	ctx        context.Context
	how        reading
	table      *kv.Table
	statements *statements
	partition  []byte

	starts  []uint64 // of the parts
	certain bool     // there are no other parts

	page  []found // rows from the current one on
	on    bool    // at page[0]
	next  uint64  // least sort key that the next page may have
	to    uint64
	limit int  // of the next page
	last  bool // there is nothing after page
	done  bool
	err   error
}

// Next implements kv.Cursor.
func (c *cursor) Next() bool {
	if !c.ready() {
		return false
	}
	if c.on {
		c.page = c.page[1:]
	}
	return c.land()
}

// Seek implements kv.Cursor.
func (c *cursor) Seek(sort uint64) bool {
	if !c.ready() {
		return false
	}
	for len(c.page) > 0 && c.page[0].sort < sort {
		c.page = c.page[1:]
	}
	if len(c.page) == 0 && sort > c.next {
		c.next = sort
	}
	return c.land()
}

// ready reports whether the cursor may move.
func (c *cursor) ready() bool {
	if c.err == nil && !c.done {
		c.err = c.store.begin(c.ctx)
	}
	if c.done || c.err != nil {
		c.on, c.page = false, nil
		return false
	}
	return true
}

// land reads further pages until there is a row, or none is left.
func (c *cursor) land() bool {
	for len(c.page) == 0 && !c.last && c.next <= c.to {
		if c.err = c.read(); c.err != nil {
			c.on, c.page = false, nil
			return false
		}
	}
	c.on = len(c.page) > 0
	c.done = !c.on
	return c.on
}

// read reads the next page, which may be empty: then the rest is in later parts.
func (c *cursor) read() error {
	s := c.store
	part := partOf(c.starts, c.next)
	query := s.query(c.statements.ascend, s.id, c.partition, part, sortColumn(c.next), sortColumn(c.to), c.limit)
	var rows []found
	size := 0
	err := s.rows(c.ctx, c.how, c.statements, query, func() { rows, size = nil, 0 }, func(f found) {
		rows = append(rows, f)
		if f.value != nil {
			size += len(*f.value)
		}
	})
	if err != nil {
		return err
	}
	full := len(rows) == c.limit
	if size < pageBytes/2 {
		c.limit = min(2*c.limit, maxPage)
	} else if size > pageBytes {
		c.limit = max(c.limit/2, 1)
	}
	// A page without rows does not say whether there are later parts.
	if !full && !c.certain && (len(rows) == 0 || rows[0].until != nil) {
		if c.starts, err = s.partsOf(c.ctx, c.table, c.partition); err != nil {
			return err
		}
		c.certain = true
		if partOf(c.starts, c.next) != part {
			return nil // the page was of the wrong part, which has none of its rows
		}
	}
	switch {
	case full:
		c.last = rows[len(rows)-1].sort == math.MaxUint64
		c.next = rows[len(rows)-1].sort + 1
	case part < len(c.starts):
		c.next = max(c.next, c.starts[part])
	default:
		c.last = true
	}
	if len(rows) > 0 && rows[0].value == nil {
		rows = rows[1:] // the mark
	}
	c.page = rows
	return nil
}

// Sort implements kv.Cursor.
func (c *cursor) Sort() uint64 {
	if !c.on {
		return 0
	}
	return c.page[0].sort
}

// Value implements kv.Cursor.
func (c *cursor) Value() []byte {
	if !c.on {
		return nil
	}
	return *c.page[0].value
}

// Close implements kv.Cursor.
func (c *cursor) Close() error {
	c.on, c.done, c.page = false, true, nil
	return c.err
}
