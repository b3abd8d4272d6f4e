package archive

import (
	"context"
	"fmt"

	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common/lru"
)

// Reader reads the blocks of a span. Its results do not change over time. It is safe for
// concurrent use.
type Reader struct {
	rows    kv.Reader
	headers *lru.Cache[uint64, *Header] // of settled blocks
	settled uint64                      // last block whose header may be cached
	ahead   kv.Prefetcher               // of rows; nil if reads take no round trips
	span    Span
}

// Span returns the range of blocks that can be read.
func (r *Reader) Span() Span { return r.span }

// check returns a *BeforeFirst or rows.ErrNotFound if a block is outside of the span.
func (r *Reader) check(number uint64) error {
	if number < r.span.First {
		return &BeforeFirst{Number: number, First: r.span.First}
	}
	if number > r.span.Last.Number {
		return fmt.Errorf("%w: block %d", rows.ErrNotFound, number)
	}
	return nil
}

// Header returns the header of a block. The caller must not modify it.
func (r *Reader) Header(ctx context.Context, number uint64) (*Header, error) {
	if err := r.check(number); err != nil {
		return nil, err
	}
	settled := number <= r.settled
	if settled {
		if header, ok := r.headers.Get(number); ok {
			return header, nil
		}
	}
	row, err := rows.OfBlock(ctx, r.rows, headers, number, nil)
	if err != nil {
		return nil, err
	}
	header, err := decodeHeader(number, row)
	if err == nil && settled {
		r.headers.Add(number, header)
	}
	return header, err
}

// Transactions returns the transactions of a block. It appends the row to buffer, which the
// transactions alias.
func (r *Reader) Transactions(ctx context.Context, number uint64, buffer []byte) (*Transactions, error) {
	if err := r.check(number); err != nil {
		return nil, err
	}
	row, err := rows.OfBlock(ctx, r.rows, transactions, number, buffer)
	if err != nil {
		return nil, err
	}
	return decodeTransactions(row[len(buffer):])
}

// FindBlock returns the number of the block with a hash, or rows.ErrNotFound.
func (r *Reader) FindBlock(ctx context.Context, hash starknet.Felt) (uint64, error) {
	number, known := uint64(0), false
	err := rows.FindBlock(ctx, r.rows, blockHashes, hash[:], 0, func(candidate uint64) (bool, error) {
		if candidate > r.span.Last.Number {
			return true, nil // settled after the reader was created
		}
		header, err := r.Header(ctx, candidate)
		if err != nil {
			return false, err
		}
		number, known = candidate, header.Hash == hash
		return known, nil
	})
	if err == nil && !known {
		err = fmt.Errorf("%w: block %s", rows.ErrNotFound, hash)
	}
	return number, err
}

// FindTransaction returns the transaction with a hash and its place, or rows.ErrNotFound.
func (r *Reader) FindTransaction(ctx context.Context, hash starknet.Felt) (place rows.Place, found Transaction, err error) {
	known := false
	err = rows.FindTransaction(ctx, r.rows, txHashes, hash[:], 0, func(candidate rows.Place) (bool, error) {
		if candidate.Number > r.span.Last.Number {
			return true, nil // settled after the reader was created
		}
		wants := r.Wants()
		wants.Header(candidate.Number) // needed together
		wants.Transactions(candidate.Number)
		wants.Read(ctx)
		all, err := r.Transactions(ctx, candidate.Number, nil)
		if err != nil {
			return false, err
		}
		if candidate.Index >= all.Len() {
			return false, fmt.Errorf("%w: block %d has no transaction %d", rows.ErrCorrupt, candidate.Number, candidate.Index)
		}
		if known = all.Hash(candidate.Index) == hash; known {
			place = candidate
			found, err = all.Transaction(candidate.Index)
		}
		return known, err
	})
	if err == nil && !known {
		err = fmt.Errorf("%w: transaction %s", rows.ErrNotFound, hash)
	}
	return place, found, err
}

// Postings returns the occurrences of an event term in the blocks from to to.
func (r *Reader) Postings(ctx context.Context, term postings.Term, from, to uint64) postings.Postings {
	return postings.Postings{Cursor: r.rows.Scan(ctx, eventPostings, term[:], from, min(to, r.span.Last.Number))}
}

// Events returns a reader of the span's events.
func (r *Reader) Events(ctx context.Context) *EventReader {
	return &EventReader{rows: r.rows, ctx: ctx}
}
