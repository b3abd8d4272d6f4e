package archive

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"ashlar/evm"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
)

// Source has the settled blocks that an archive does not store. Its methods return
// ErrNotFound for a block that it does not have either. It must only return blocks of one
// chain, and the same ones each time.
type Source interface {
	// Block returns a block with its senders. It need not have the receipts.
	Block(ctx context.Context, number uint64) (*evm.Delta, error)
	Receipts(ctx context.Context, number uint64) (types.Receipts, error)
	// AccessList returns the RLP of the access list of a block that has one.
	AccessList(ctx context.Context, header *types.Header) ([]byte, error)
	// FindBlock returns the number of the block with a hash.
	FindBlock(ctx context.Context, hash common.Hash) (uint64, error)
	// FindTransaction returns the position of a transaction.
	FindTransaction(ctx context.Context, hash common.Hash) (Place, error)
}

// CompletedBy returns the history of the archive in which the blocks that the archive lacks
// are read from a source. They are never written to the store. Their total difficulty is not
// known. Blocks are read from the store as soon as they settle there.
func (a *Archive) CompletedBy(source Source) *History {
	joined := &sourcedRows{
		Reader: a.History.store, archive: a, source: source,
		encoded: lru.NewSizeConstrainedCacheWithKeySize[sourcedRow, []byte](sourcedBytes, func(sourcedRow) uint64 { return sourcedEntryBytes }),
	}
	h := a.History
	h.rows, h.store, h.sourced, h.ahead, h.newest = joined, joined, joined, nil, nil
	h.headers, h.numbers = lru.NewCache[uint64, *Header](cachedHeaders), lru.NewCache[common.Hash, uint64](cachedHeaders)
	return &h
}

// Stores reports whether the archive itself has a block.
func (a *Archive) Stores(number uint64) bool {
	settled, ok := a.Settled()
	return number == 0 || ok && number <= settled.Number && number >= a.Extent().Blocks
}

// StoresState reports whether the archive itself has the state after a block, or that state's trie
// nodes.
func (a *Archive) StoresState(number uint64, kind Kind) bool {
	settled, ok := a.Settled()
	return ok && number <= settled.Number && number >= a.Extent().first(kind)
}

// Away means that something of a block that is not stored could not be read from the [Source].
type Away struct {
	Kind        Kind   // what was asked for
	Number      uint64 // of which block
	First, Last uint64 // of which blocks that is stored
	Err         error  // why it could not be read
}

func (e *Away) Error() string { return e.Place() + ": " + e.Err.Error() }

// Place says what is stored. Its words are not those of [Pruned]: proxies must not conclude that there is no history.
func (e *Away) Place() string {
	switch {
	case e.Number >= e.First:
		return fmt.Sprintf("block %d is not stored yet (the last block is %d)", e.Number, e.Last)
	case e.Kind == OfState:
		return fmt.Sprintf("the state of block %d is not stored (the first block with state is %d)", e.Number, e.First)
	case e.Kind == OfTries:
		return fmt.Sprintf("the trie nodes of block %d are not stored (the first block with trie nodes is %d)", e.Number, e.First)
	}
	return fmt.Sprintf("block %d is not stored (the first block is %d)", e.Number, e.First)
}

// Unwrap returns why it could not be read.
func (e *Away) Unwrap() error { return e.Err }

// Explain returns an error of a source about something of a block, with where the archive itself
// begins. The error of an archive that has only the genesis, or that a
// source does not have the block either, stays as it is.
func (a *Archive) Explain(number uint64, kind Kind, err error) error {
	settled, _ := a.Settled()
	if err == nil || errors.Is(err, ErrNotFound) || settled.Number == 0 {
		return err
	}
	if away := (*Away)(nil); errors.As(err, &away) {
		return err
	}
	return &Away{Kind: kind, Number: number, First: a.Extent().first(kind), Last: settled.Number, Err: err}
}

const (
	sourcedBytes      = 64 << 20 // rows of a source's blocks that are kept
	sourcedEntryBytes = 200      // of a kept row besides its value
)

// sourcedRows are the rows of an archive, with those that the blocks of a source would have
// there. It implements [kv.Reader]; only the tables with one row per block have rows of the
// source.
type sourcedRows struct {
	kv.Reader
	archive *Archive
	source  Source
	encoded *lru.SizeConstrainedCache[sourcedRow, []byte]
}

// sourcedRow names a row of a block.
type sourcedRow struct {
	table  *kv.Table
	number uint64
}

// sourced reports whether a table's row of a block is read from the source.
func (s *sourcedRows) sourced(t *kv.Table, number uint64) bool {
	switch t {
	case headers, bodies, receipts:
		return !s.archive.Stores(number)
	}
	return false
}

// Get implements [kv.Reader].
func (s *sourcedRows) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	if !s.sourced(t, sort) {
		stored, err := s.Reader.Get(ctx, t, partition, sort, dst)
		removed := errors.Is(err, kv.ErrNotFound) && s.sourced(t, sort) // meanwhile, by a window
		if !removed {
			return stored, err
		}
	}
	row, err := s.row(ctx, t, sort)
	return append(dst, row...), s.archive.Explain(sort, OfBlock, err)
}

// row returns a row of a block of the source, or kv.ErrNotFound. The caller must not change it.
func (s *sourcedRows) row(ctx context.Context, t *kv.Table, number uint64) (row []byte, err error) {
	key := sourcedRow{t, number}
	if row, ok := s.encoded.Get(key); ok {
		return row, nil
	}
	switch t {
	case headers, bodies:
		return s.block(ctx, key)
	case receipts:
		var all types.Receipts
		if all, err = s.source.Receipts(ctx, number); err == nil {
			row = encodeReceipts(all, nil)
		}
	}
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", kv.ErrNotFound, err)
	}
	if err == nil {
		s.encoded.Add(key, row)
	}
	return row, err
}

// block encodes both rows of a block, since most who read one read the other.
func (s *sourcedRows) block(ctx context.Context, key sourcedRow) ([]byte, error) {
	delta, err := s.source.Block(ctx, key.number)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", kv.ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	header, err := encodeHeader(delta.Block, new(big.Int))
	if err != nil {
		return nil, err
	}
	body, err := encodeBody(delta.Block, delta.Senders)
	if err != nil {
		return nil, err
	}
	s.encoded.Add(sourcedRow{headers, key.number}, header)
	s.encoded.Add(sourcedRow{bodies, key.number}, body)
	if key.table == headers {
		return header, nil
	}
	return body, nil
}

// Scan implements [kv.Reader].
func (s *sourcedRows) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	switch t {
	case headers, bodies, receipts:
		if s.archive.Stores(from) && s.archive.Stores(to) && from > 0 {
			break
		}
		return &sourcedCursor{ctx: ctx, rows: s, table: t, partition: partition, next: from, to: to}
	}
	return s.Reader.Scan(ctx, t, partition, from, to)
}

// sourcedCursor steps through the rows of consecutive blocks.
type sourcedCursor struct {
	ctx       context.Context
	rows      *sourcedRows
	table     *kv.Table
	partition []byte
	next, to  uint64
	at        uint64
	value     []byte
	ended     bool
	err       error
}

// Next implements [kv.Cursor].
func (c *sourcedCursor) Next() bool {
	for !c.ended && c.next <= c.to {
		c.at = c.next
		c.next++
		var err error
		c.value, err = c.rows.Get(c.ctx, c.table, c.partition, c.at, nil)
		if err == nil {
			return true
		}
		if !errors.Is(err, kv.ErrNotFound) {
			c.err = err
			break
		}
	}
	c.ended = true
	return false
}

// Seek implements [kv.Cursor].
func (c *sourcedCursor) Seek(sort uint64) bool {
	if !c.ended && c.value != nil && c.at >= sort {
		return true
	}
	c.next = max(c.next, sort)
	return c.Next()
}

// Sort implements [kv.Cursor].
func (c *sourcedCursor) Sort() uint64 { return c.at }

// Value implements [kv.Cursor].
func (c *sourcedCursor) Value() []byte { return c.value }

// Close implements [kv.Cursor].
func (c *sourcedCursor) Close() error {
	c.ended = true
	return c.err
}

// findSourced is [History.FindBlock] for a block that the archive does not have.
func (h *History) findSourced(ctx context.Context, hash common.Hash) (uint64, error) {
	if h.sourced == nil {
		return 0, fmt.Errorf("%w: block %x", ErrNotFound, hash)
	}
	number, err := h.sourced.source.FindBlock(ctx, hash)
	if err == nil {
		h.numbers.Add(hash, number)
	}
	return number, err
}

// Sourced reports whether blocks that are not stored are read from a [Source].
func (h *History) Sourced() bool { return h.sourced != nil }

// findSourcedTransaction is [History.FindTransaction] for a transaction that the archive
// does not have.
func (h *History) findSourcedTransaction(ctx context.Context, hash common.Hash, found func(Place) (bool, error)) error {
	place, err := h.sourced.source.FindTransaction(ctx, hash)
	if errors.Is(err, rows.ErrNotFound) {
		return nil
	}
	if err == nil {
		_, err = found(place)
	}
	return err
}
