package kvtest

import (
	"context"
	"sync/atomic"
	"time"

	"ashlar/kv"
)

// Distant is a store each of whose reads takes as long as statements of a distributed
// engine would: one wait for a row, for all keys that are read at once, and for each page
// of rows. In a bubble of testing/synctest the time that passes counts the waits that
// depend on each other.
type Distant struct {
	kv.Store
	Statement time.Duration // that one statement takes
	Count     atomic.Int64  // statements
}

const (
	distantPage    = 64 // rows of the first page of a partition; each page doubles up to distantLast
	distantLast    = 1024
	distantDescend = 8
)

func (d *Distant) wait(statements int) {
	d.Count.Add(int64(statements))
	time.Sleep(d.Statement)
}

// Distant implements kv.Distant.
func (d *Distant) Distant() {}

// Get implements kv.Reader.
func (d *Distant) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	d.wait(1)
	return d.Store.Get(ctx, t, partition, sort, dst)
}

// Newest implements kv.Reader.
func (d *Distant) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	d.wait(1)
	return d.Store.Newest(ctx, t, partition, at, dst)
}

// Descend implements kv.Reader.
func (d *Distant) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	d.wait(1)
	rows, page := 0, distantDescend
	return d.Store.Descend(ctx, t, partition, at, func(sort uint64, value []byte) (bool, error) {
		if rows == page {
			d.wait(1)
			page += page
		}
		rows++
		return found(sort, value)
	})
}

// GetMany implements kv.Reader.
func (d *Distant) GetMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, value []byte) error) error {
	d.wait(len(keys))
	return d.Store.GetMany(ctx, t, keys, found)
}

// NewestMany implements kv.Reader.
func (d *Distant) NewestMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, sort uint64, value []byte) error) error {
	d.wait(len(keys))
	return d.Store.NewestMany(ctx, t, keys, found)
}

// Scan implements kv.Reader.
func (d *Distant) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	return &distantCursor{Cursor: d.Store.Scan(ctx, t, partition, from, to), store: d, page: distantPage}
}

// Pointer implements kv.Reader.
func (d *Distant) Pointer(ctx context.Context, name string) ([]byte, error) {
	d.wait(1)
	return d.Store.Pointer(ctx, name)
}

// distantCursor waits for each page of rows.
type distantCursor struct {
	kv.Cursor
	store *Distant
	left  int // rows of the page
	page  int // rows of the next one
}

// Next implements kv.Cursor.
func (c *distantCursor) Next() bool {
	c.move()
	return c.Cursor.Next()
}

// Seek implements kv.Cursor. A row that is far ahead may be on a later page; it is counted
// as the next one.
func (c *distantCursor) Seek(sort uint64) bool {
	c.move()
	return c.Cursor.Seek(sort)
}

func (c *distantCursor) move() {
	if c.left == 0 {
		c.store.wait(1)
		c.left, c.page = c.page, min(2*c.page, distantLast)
	}
	c.left--
}
