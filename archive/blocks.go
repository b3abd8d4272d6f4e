package archive

import (
	"context"
	"fmt"

	"ashlar/kv"
)

// ReceiptsReader reads the receipts of many blocks, in ascending order. It costs
// less than as many calls of [Archive.Receipts]: nothing is copied, and blocks
// that are close together are stepped through. It belongs to one goroutine and
// must be closed.
type ReceiptsReader struct{ rows rowReader }

// ReadReceipts returns a reader of the receipts of blocks up to last.
func (a *Archive) ReadReceipts(ctx context.Context, last uint64) *ReceiptsReader {
	return &ReceiptsReader{rowReader{store: a.store, ctx: ctx, table: receipts, last: last}}
}

// Receipts returns the receipts of a block, which is above every one that the
// reader was asked for before, or ErrNotFound. They are valid until the next call.
func (r *ReceiptsReader) Receipts(number uint64) (*Receipts, error) {
	row, err := r.rows.row(number)
	if err != nil {
		return nil, err
	}
	return decodeReceipts(row)
}

// Close releases the reader. It may be called again.
func (r *ReceiptsReader) Close() error { return r.rows.close() }

// BodyReader is to bodies what [ReceiptsReader] is to receipts.
type BodyReader struct{ rows rowReader }

// ReadBodies returns a reader of the bodies of blocks up to last.
func (a *Archive) ReadBodies(ctx context.Context, last uint64) *BodyReader {
	return &BodyReader{rowReader{store: a.store, ctx: ctx, table: bodies, last: last}}
}

// Body returns the body of a block, which is above every one that the reader was
// asked for before, or ErrNotFound. It is valid until the next call.
func (r *BodyReader) Body(number uint64) (*Body, error) {
	row, err := r.rows.row(number)
	if err != nil {
		return nil, err
	}
	return decodeBody(row)
}

// Close releases the reader. It may be called again.
func (r *BodyReader) Close() error { return r.rows.close() }

// rowReader reads the rows of ascending blocks from a table that has a row a block.
type rowReader struct {
	store  kv.Reader
	ctx    context.Context
	table  *kv.Table
	last   uint64
	cursor kv.Cursor // over what is left of a partition; nil before the first row
	end    uint64    // last block of that partition
	on     bool      // the cursor is at a row
}

func (r *rowReader) row(number uint64) ([]byte, error) {
	if r.cursor == nil || number > r.end {
		if err := r.close(); err != nil {
			return nil, err
		}
		partition := chunk(number)
		r.end = number | (1<<chunkBits - 1)
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
		if err := r.close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: block %d in %s", ErrNotFound, number, r.table.Name)
}

func (r *rowReader) close() error {
	if r.cursor == nil {
		return nil
	}
	cursor := r.cursor
	r.cursor = nil
	return cursor.Close()
}
