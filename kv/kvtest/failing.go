package kvtest

import (
	"context"

	"ashlar/kv"
)

// FailAfter returns a reader like r whose cursors fail with err after the given number
// of moves, counted over all of them. Tests of readers use it: a failure must be reported
// as one, not taken for the end of the rows. The reader and its cursors belong to one
// goroutine.
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

// mayMove reports whether the cursor can move: it has not failed, and does not fail now.
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
