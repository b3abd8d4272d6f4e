package rows

import (
	"context"
	"fmt"

	"ashlar/kv"
)

// Ascending reads the rows of blocks in ascending order from a table with one row per
// block. It is cheaper than repeated calls of [OfBlock]: it does not copy, and it steps
// through nearby blocks instead of seeking. It is for use by one goroutine and must be
// closed.
type Ascending struct {
	store  kv.Reader
	ctx    context.Context
	table  *kv.Table
	last   uint64
	cursor kv.Cursor // over the rest of a partition; nil before the first row
	end    uint64    // last block of that partition
	on     bool      // whether the cursor is at a row
}

// ReadAscending returns a reader for the rows of blocks up to last.
func ReadAscending(ctx context.Context, store kv.Reader, table *kv.Table, last uint64) Ascending {
	return Ascending{store: store, ctx: ctx, table: table, last: last}
}

// Row returns the row of a block, or ErrNotFound. Numbers must not decrease from call to
// call. The row is valid until the next call.
func (r *Ascending) Row(number uint64) ([]byte, error) {
	if r.cursor == nil || number > r.end {
		if err := r.Close(); err != nil {
			return nil, err
		}
		partition := Chunk(number)
		r.end = number | (1<<ChunkBits - 1)
		r.cursor = r.store.Scan(r.ctx, r.table, partition[:], number, min(r.end, r.last))
		r.on = false
	}
	if r.on && number == r.cursor.Sort()+1 {
		r.on = r.cursor.Next()
	} else {
		r.on = r.cursor.Seek(number)
	}
	if r.on && r.cursor.Sort() == number {
		return r.cursor.Value(), nil
	}
	if !r.on {
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: block %d in %s", ErrNotFound, number, r.table.Name)
}

// Close releases the reader. It may be called more than once.
func (r *Ascending) Close() error {
	if r.cursor == nil {
		return nil
	}
	cursor := r.cursor
	r.cursor = nil
	return cursor.Close()
}
