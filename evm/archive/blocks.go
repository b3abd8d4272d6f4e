package archive

import (
	"context"

	"ashlar/history/rows"
)

// ReceiptsReader reads the receipts of many blocks, in ascending order. It is cheaper than
// calling [History.Receipts] for each: it copies nothing, and steps through blocks that are
// close together. It belongs to one goroutine and must be closed.
type ReceiptsReader struct {
	rows     rows.Ascending
	receipts Receipts // returned last
}

// ReadReceipts returns a reader of the receipts of blocks up to last.
func (h *History) ReadReceipts(ctx context.Context, last uint64) *ReceiptsReader {
	return &ReceiptsReader{rows: rows.ReadAscending(ctx, h.rows, receipts, last)}
}

// Receipts returns the receipts of a block, or ErrNotFound. Block numbers must not decrease
// between calls. The receipts are valid until the next call.
func (r *ReceiptsReader) Receipts(number uint64) (*Receipts, error) {
	row, err := r.rows.Row(number)
	if err != nil {
		return nil, err
	}
	if r.receipts, err = decodeReceipts(row); err != nil {
		return nil, err
	}
	return &r.receipts, nil
}

// Close releases the reader. It may be called more than once.
func (r *ReceiptsReader) Close() error { return r.rows.Close() }

// BodyReader is [ReceiptsReader] for bodies.
type BodyReader struct {
	rows rows.Ascending
	body Body // returned last
}

// ReadBodies returns a reader of the bodies of blocks up to last.
func (h *History) ReadBodies(ctx context.Context, last uint64) *BodyReader {
	return &BodyReader{rows: rows.ReadAscending(ctx, h.rows, bodies, last)}
}

// Body returns the body of a block, or ErrNotFound. Block numbers must not decrease between
// calls. The body is valid until the next call.
func (r *BodyReader) Body(number uint64) (*Body, error) {
	row, err := r.rows.Row(number)
	if err != nil {
		return nil, err
	}
	if r.body, err = decodeBody(row); err != nil {
		return nil, err
	}
	return &r.body, nil
}

// Close releases the reader. It may be called more than once.
func (r *BodyReader) Close() error { return r.rows.Close() }

// StampReader is [ReceiptsReader] for stamps.
type StampReader struct {
	history *History
	rows    rows.Ascending
}

// ReadStamps returns a reader of the stamps of blocks up to last.
func (h *History) ReadStamps(ctx context.Context, last uint64) *StampReader {
	return &StampReader{h, rows.ReadAscending(ctx, h.rows, headers, last)}
}

// Stamp returns the stamp of a block, or ErrNotFound. Block numbers must not decrease
// between calls.
func (r *StampReader) Stamp(number uint64) (Stamp, error) {
	if header, ok := r.history.headerCache(number).Peek(number); ok {
		return Stamp{header.Hash, header.Time}, nil
	}
	row, err := r.rows.Row(number)
	if err != nil {
		return Stamp{}, err
	}
	return decodeStamp(row)
}

// Close releases the reader. It may be called more than once.
func (r *StampReader) Close() error { return r.rows.Close() }
