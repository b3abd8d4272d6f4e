package kvtest

import (
	"context"

	"ashlar/kv"
)

// FailAfter returns a reader like another one, but that its cursors fail with err once
// they have been moved so many times, all of them together. It is for the tests of
// whoever reads: a failure must come out as one, and not as the end of the rows. The
// reader and its cursors belong to one goroutine.
func FailAfter(r kv.Reader, moves int, err error) kv.Reader {
	return &failingReader{Reader: r, left: moves, err: err}
}

type failingReader struct {
	kv.Reader
	left int // moves that succeed
	err  error
}

func (r *failingReader) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	return &failingCursor{Cursor: r.Reader.Scan(ctx, t, partition, from, to), reader: r}
}

type failingCursor struct {
	kv.Cursor
	reader *failingReader
	closed bool
	err    error
}

// mayMove says whether the cursor has not failed, and does not now.
func (c *failingCursor) mayMove() bool {
	if c.closed || c.err != nil {
		return false
	}
	if c.reader.left == 0 {
		c.err = c.reader.err
		return false
	}
	c.reader.left--
	return true
}

func (c *failingCursor) Next() bool            { return c.mayMove() && c.Cursor.Next() }
func (c *failingCursor) Seek(sort uint64) bool { return c.mayMove() && c.Cursor.Seek(sort) }

func (c *failingCursor) Close() error {
	c.closed = true
	if err := c.Cursor.Close(); c.err == nil {
		c.err = err
	}
	return c.err
}
