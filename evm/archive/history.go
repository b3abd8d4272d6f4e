package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

const (
	cachedHeaders   = 8192     // decoded headers, about 1 KiB each: more than a day of blocks of 12 seconds
	cachedUnsettled = 256      // of a branch
	cachedCodeBytes = 32 << 20 // contract code
	// cachedCodeEntryBytes is what a code takes in the cache beside itself: 142 to 200
	// bytes, as full as its map is. Many codes are shorter than that, such as those of
	// delegated accounts (EIP-7702), of 23 bytes.
	cachedCodeEntryBytes = 200
)

// History reads blocks and state: those of an [Archive], or of a branch of
// unsettled blocks over it. Its methods may be called from many goroutines at once.
type History struct {
	rows    kv.Reader
	store   kv.Reader // the part of rows that is settled
	settled uint64    // the last block whose rows are in store, and whose header is in headers
	headers *lru.Cache[uint64, *Header]
	// numbers are those of the blocks whose headers were read, by hash. They are
	// guesses: this history may have another block there, or none.
	numbers *lru.Cache[common.Hash, uint64]
	// unsettled are headers of the branch, which others know nothing of.
	unsettled *lru.Cache[uint64, *Header]
	codes     *lru.SizeConstrainedCache[common.Hash, []byte]
}

// newHistory reads what is settled.
func newHistory(rows kv.Reader) History {
	return History{
		rows:    rows,
		store:   rows,
		settled: math.MaxUint64,
		headers: lru.NewCache[uint64, *Header](cachedHeaders),
		numbers: lru.NewCache[common.Hash, uint64](cachedHeaders),
		codes: lru.NewSizeConstrainedCacheWithKeySize[common.Hash, []byte](
			cachedCodeBytes, func(common.Hash) uint64 { return cachedCodeEntryBytes }),
	}
}

// Rows are the rows of what is settled, for [Archive.Over].
func (a *Archive) Rows() kv.Reader { return a.store }

// Over is the history that rows hold: those of the archive's blocks up to settled,
// and above them those of a branch of unsettled blocks, as [History.Encode] makes them.
func (a *Archive) Over(rows kv.Reader, settled uint64) *History {
	return &History{
		rows: rows, store: a.store, settled: settled,
		headers: a.headers, numbers: a.numbers, unsettled: lru.NewCache[uint64, *Header](cachedUnsettled), codes: a.codes,
	}
}

// ofBlock is where the rows of a block are: not among those of the branch if the block
// is settled.
func (h *History) ofBlock(number uint64) kv.Reader {
	if number > h.settled {
		return h.rows
	}
	return h.store
}

// Header returns the header of a block, or ErrNotFound. The caller must not change it.
func (h *History) Header(ctx context.Context, number uint64) (*Header, error) {
	known := h.headerCache(number)
	if header, ok := known.Get(number); ok {
		return header, nil
	}
	row, err := rows.OfBlock(ctx, h.ofBlock(number), headers, number, nil)
	if err != nil {
		return nil, err
	}
	header, err := decodeHeader(row)
	if err != nil {
		return nil, err
	}
	known.Add(number, header)
	h.numbers.Add(header.Hash, number)
	return header, nil
}

// headerCache is the cache that the header of a block is in, if it is in any.
func (h *History) headerCache(number uint64) *lru.Cache[uint64, *Header] {
	if number > h.settled {
		return h.unsettled
	}
	return h.headers
}

// Body returns the body of a block, or ErrNotFound. The body refers to buffer,
// which the row is appended to.
func (h *History) Body(ctx context.Context, number uint64, buffer []byte) (*Body, error) {
	row, err := rows.OfBlock(ctx, h.ofBlock(number), bodies, number, buffer)
	if err != nil {
		return nil, err
	}
	body, err := decodeBody(row[len(buffer):])
	if err != nil {
		return nil, err
	}
	return &body, nil
}

// Receipts returns the receipts of a block, or ErrNotFound. They refer to
// buffer, which the row is appended to.
func (h *History) Receipts(ctx context.Context, number uint64, buffer []byte) (*Receipts, error) {
	row, err := rows.OfBlock(ctx, h.ofBlock(number), receipts, number, buffer)
	if err != nil {
		return nil, err
	}
	receipts, err := decodeReceipts(row[len(buffer):])
	if err != nil {
		return nil, err
	}
	return &receipts, nil
}

// AccessList returns the RLP of a block's access list (EIP-7928), or ErrNotFound for a
// block before Amsterdam.
func (h *History) AccessList(ctx context.Context, number uint64) ([]byte, error) {
	return rows.OfBlock(ctx, h.ofBlock(number), accessLists, number, nil)
}

// HoldBody returns the body of a block, or ErrNotFound. The body is read where it is
// stored, until held is closed: whoever wants one transaction need not copy all.
func (h *History) HoldBody(ctx context.Context, number uint64) (body Body, held io.Closer, err error) {
	cursor, err := rows.Hold(ctx, h.ofBlock(number), bodies, number)
	if err != nil {
		return body, nil, err
	}
	if body, err = decodeBody(cursor.Value()); err != nil {
		return body, nil, errors.Join(err, cursor.Close())
	}
	return body, cursor, nil
}

// HoldReceipts is to receipts what [History.HoldBody] is to bodies.
func (h *History) HoldReceipts(ctx context.Context, number uint64) (all Receipts, held io.Closer, err error) {
	cursor, err := rows.Hold(ctx, h.ofBlock(number), receipts, number)
	if err != nil {
		return all, nil, err
	}
	if all, err = decodeReceipts(cursor.Value()); err != nil {
		return all, nil, errors.Join(err, cursor.Close())
	}
	return all, cursor, nil
}

// FindBlock returns the number of the block with a hash, or ErrNotFound.
func (h *History) FindBlock(ctx context.Context, hash common.Hash) (uint64, error) {
	number, known := uint64(0), false
	check := func(candidate uint64) (bool, error) {
		header, err := h.Header(ctx, candidate)
		if err != nil {
			return false, err
		}
		number, known = candidate, header.Hash == hash
		return known, nil
	}
	if guess, ok := h.numbers.Get(hash); ok {
		if found, _ := check(guess); found { // an error may be the guess's; another comes again
			return number, nil
		}
	}
	err := rows.FindBlock(ctx, h.rows, blockHashes, hash[:], check)
	if err == nil && !known {
		err = fmt.Errorf("%w: block %x", ErrNotFound, hash)
	}
	return number, err
}

// A Place is where a transaction is.
type Place = rows.Place

// FindTransaction calls found with every place where a transaction with this
// hash may be, until found says that it was there. There is rarely more than one,
// and none for nearly every hash that no transaction has.
func (h *History) FindTransaction(ctx context.Context, hash common.Hash, found func(Place) (bool, error)) error {
	return rows.FindTransaction(ctx, h.rows, txHashes, hash[:], found)
}

// Postings is where a term of a log occurs, in blocks from one to another.
func (h *History) Postings(ctx context.Context, term postings.Term, from, to uint64) postings.Postings {
	return postings.Postings{Cursor: h.rows.Scan(ctx, logPostings, term[:], from, to)}
}

// code returns the contract code with a hash.
func (h *History) code(ctx context.Context, hash common.Hash) ([]byte, error) {
	if code, ok := h.codes.Get(hash); ok {
		return code, nil
	}
	code, err := h.rows.Get(ctx, codes, hash[:], 0, nil)
	if err != nil {
		return nil, err
	}
	code = slices.Clip(code)
	h.codes.Add(hash, code)
	return code, nil
}
