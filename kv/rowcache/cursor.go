package rowcache

import (
	"context"

	"ashlar/kv"
)

// keptBytes is the size of the rows of a range that are kept together.
const keptBytes = 64 << 10

// Scan implements kv.Reader. The cursor steps through rows that are known, and reads from
// the store only from the first one on that is not.
func (s *Store) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	if t.Transient {
		return s.Store.Scan(ctx, t, partition, from, to)
	}
	return &cursor{store: s, ctx: ctx, table: t, partition: append([]byte{}, partition...), next: from, to: to, done: from > to}
}

// cursor steps through the rows of one partition.
type cursor struct {
	store     *Store
	ctx       context.Context
	table     *kv.Table
	partition []byte
	next, to  uint64 // sort keys of rows that may follow
	now       row
	on, done  bool
	err       error

	known span // the span that was looked up last; it has no row if it is empty

	reading kv.Cursor // of the store; nil before it is needed
	at      mark      // when it was opened
	read    span      // what it has read without a gap, up to its last row
	size    int       // of the rows in read
}

// Next implements kv.Cursor.
func (c *cursor) Next() bool { return c.move() }

// Seek implements kv.Cursor.
func (c *cursor) Seek(sort uint64) bool {
	if c.on && c.now.sort >= sort {
		return true
	}
	if sort > c.next {
		c.next = sort
	}
	return c.move()
}

// move moves to the first row at or after next.
func (c *cursor) move() bool {
	if c.err == nil && !c.done {
		c.err = c.ctx.Err()
	}
	c.on = false
	for c.err == nil && !c.done {
		if c.next > c.to {
			c.done = true
			break
		}
		if !c.find() {
			c.step()
			return c.on
		}
		if c.on {
			return true
		}
	}
	return false
}

// find looks next up. It returns false if it is not known which row follows; otherwise it
// moves to that row, or next to where the knowledge ends.
func (c *cursor) find() bool {
	p := &c.known
	if p.from > c.next || c.next > p.to || p.to == 0 && len(p.rows) == 0 {
		var ok bool
		if c.known, ok = c.store.look(c.ctx, c.table, c.partition, c.next); !ok {
			return false
		}
	}
	if i := p.find(c.next); i < len(p.rows) {
		if p.rows[i].sort > c.to {
			c.done = true
			return true
		}
		c.land(p.rows[i])
	} else {
		c.after(p.to)
	}
	return true
}

// land moves to a row.
func (c *cursor) land(r row) {
	c.now, c.on = r, true
	if c.next = r.sort + 1; c.next == 0 {
		c.next, c.to = 1, 0 // nothing follows
	}
}

// after sets next behind a sort key.
func (c *cursor) after(sort uint64) {
	c.next = sort + 1
	c.done = c.next == 0
}

// step moves to a row that the store has.
func (c *cursor) step() {
	if c.reading == nil {
		c.at = c.store.begin(c.ctx)
		c.store.missed(c.ctx, 1)
		c.reading = c.store.Store.Scan(c.ctx, c.table, c.partition, c.next, c.to)
		c.read = span{from: c.next}
	}
	if c.next != c.readUpTo() { // rows were skipped, or known
		c.flush()
		c.read = span{from: c.next}
	}
	if c.reading.Seek(c.next) {
		r := row{c.reading.Sort(), append([]byte{}, c.reading.Value()...)}
		c.record(r)
		c.land(r)
		return
	}
	c.done = true
	if c.err = c.reading.Close(); c.err == nil {
		c.read.to = c.to
		c.keep()
	}
}

// readUpTo is where the rows after those in read begin.
func (c *cursor) readUpTo() uint64 {
	if len(c.read.rows) == 0 {
		return c.read.from
	}
	return c.read.to + 1
}

// record adds a row to what was read.
func (c *cursor) record(r row) {
	if named(c.table) {
		c.store.keep(c.at, c.table, c.partition, span{from: r.sort, to: r.sort, rows: []row{r}})
		return
	}
	c.read.rows, c.read.to = append(c.read.rows, r), r.sort
	if c.size += len(r.value) + rowBytes; c.size > keptBytes {
		c.flush()
		c.read = span{from: r.sort + 1}
	}
}

// flush keeps the rows that were read.
func (c *cursor) flush() {
	if len(c.read.rows) > 0 {
		c.keep()
	}
}

func (c *cursor) keep() {
	if !named(c.table) {
		c.store.keep(c.at, c.table, c.partition, c.read)
	}
	c.read, c.size = span{}, 0
}

// Sort implements kv.Cursor.
func (c *cursor) Sort() uint64 {
	if !c.on {
		return 0
	}
	return c.now.sort
}

// Value implements kv.Cursor.
func (c *cursor) Value() []byte {
	if !c.on {
		return nil
	}
	return c.now.value
}

// Close implements kv.Cursor.
func (c *cursor) Close() error {
	c.on, c.done = false, true
	if c.reading == nil {
		return c.err
	}
	if c.err == nil {
		c.flush()
	}
	err := c.reading.Close()
	c.reading = nil
	if c.err == nil {
		c.err = err
	}
	return c.err
}
