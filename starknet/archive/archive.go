// Package archive stores the settled history of a Starknet network: its blocks, transactions,
// receipts and events, and the index of events.
//
// Rows are only removed by [Rewind]; docs/format.md draws them. One writer appends blocks with
// [Archive.Append]; readers run concurrently and never wait for it. The first block of an archive
// may have any number; a request for an earlier block fails with a [*BeforeFirst].
package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/history/settling"
	"ashlar/kv"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

// Format is the version of docs/format.md that this package reads and writes.
const Format = "ashlar-starknet-1"

// cachedHeaders is the number of decoded headers in the cache, about 700 bytes each.
const cachedHeaders = 4096

// maxChainID is the maximum length of a chain ID: it must fit a felt.
const maxChainID = 31

var (
	// ErrOtherChain means that the archive holds another chain than expected.
	ErrOtherChain = errors.New("archive: holds another chain")
	// ErrChainID means that a text cannot be a chain ID.
	ErrChainID = errors.New("archive: invalid chain ID")
)

// BeforeFirst means that a block is before the first one in the archive.
type BeforeFirst struct{ Number, First uint64 }

func (e *BeforeFirst) Error() string {
	return fmt.Sprintf("block %d is not available: this network begins with block %d", e.Number, e.First)
}

// Is makes errors.Is(err, rows.ErrNotFound) true.
func (e *BeforeFirst) Is(kind error) bool { return kind == rows.ErrNotFound }

// Archive is the settled history of one network.
type Archive struct {
	store   kv.Store
	chainID string
	headers *lru.Cache[uint64, *Header]
	span    atomic.Pointer[Span] // nil while there are no blocks

	doubtful *appended // an append whose write failed; nil if the last one did not; for the writer
}

// Span is the range of blocks in an archive.
type Span struct {
	First uint64
	Last  chain.Ref
}

// Accept returns an error if a store cannot become, or is not, an archive of the chain with an
// ID; any chain if the ID is empty. It does not change the store.
func Accept(ctx context.Context, store kv.Reader, chainID string) error {
	if chainID != "" {
		if err := checkChainID(chainID); err != nil {
			return err
		}
	}
	err := rows.CheckComplete(ctx, store, Format)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil || chainID == "" {
		return err
	}
	id, err := store.Pointer(ctx, pointerChain)
	if err == nil && string(id) != chainID {
		err = fmt.Errorf("%w: its chain ID is %q, expected %q", ErrOtherChain, id, chainID)
	}
	return err
}

// Create creates an archive in an empty store, or opens an existing one. It returns ErrOtherChain
// if that is of another chain.
func Create(ctx context.Context, store kv.Store, chainID string) (*Archive, error) {
	if err := checkChainID(chainID); err != nil {
		return nil, err
	}
	if err := Accept(ctx, store, chainID); err != nil {
		return nil, err
	}
	if _, err := rows.Format(ctx, store); !errors.Is(err, kv.ErrNotFound) {
		return Open(ctx, store) // returns the error again, if any
	}
	batch := store.NewBatch()
	rows.SetFormat(batch, Format)
	batch.SetPointer(pointerChain, []byte(chainID))
	if err := store.Write(ctx, batch); err != nil {
		return nil, err
	}
	return Open(ctx, store)
}

// checkChainID validates a chain ID: it is represented as a felt with these characters.
func checkChainID(id string) error {
	if id == "" || len(id) > maxChainID {
		return fmt.Errorf("%w: %q has %d characters, expected 1 to %d", ErrChainID, id, len(id), maxChainID)
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%w: %q contains %q, expected printable ASCII without spaces", ErrChainID, id, c)
		}
	}
	return nil
}

// Open opens the archive in a store, or returns kv.ErrNotFound if there is none.
func Open(ctx context.Context, store kv.Store) (*Archive, error) {
	a, span, err := openSpan(ctx, store)
	if span == nil || err != nil {
		return a, err
	}
	header, err := a.Settled(span).Header(ctx, span.Last.Number)
	if err != nil {
		return nil, fmt.Errorf("archive: settled block: %w", err)
	}
	if header.Ref() != span.Last {
		return nil, fmt.Errorf("%w: the settled pointer names block %s, its header has hash %s", rows.ErrCorrupt, span.Last, header.Hash)
	}
	a.span.Store(span)
	return a, nil
}

// openSpan opens the archive in a store and reads its span from the pointers; nil if it has no
// blocks.
func openSpan(ctx context.Context, store kv.Store) (*Archive, *Span, error) {
	if err := rows.CheckComplete(ctx, store, Format); err != nil {
		return nil, nil, err
	}
	id, err := store.Pointer(ctx, pointerChain)
	if err != nil {
		return nil, nil, fmt.Errorf("archive: chain ID: %w", err)
	}
	if err := checkChainID(string(id)); err != nil {
		return nil, nil, fmt.Errorf("%w: the chain pointer: %w", rows.ErrCorrupt, err)
	}
	a := &Archive{store: store, chainID: string(id), headers: lru.NewCache[uint64, *Header](cachedHeaders)}
	last, ok, err := rows.Settled(ctx, store)
	if !ok || err != nil {
		return a, nil, err
	}
	first, err := readFirst(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	return a, &Span{First: first, Last: last}, nil
}

// Refresh reads the span again, of a store to which another process writes, and returns its
// last block.
func (a *Archive) Refresh(ctx context.Context) (chain.Ref, error) {
	last, ok, err := rows.Settled(ctx, a.store)
	if !ok || err != nil {
		return last, err
	}
	if now := a.span.Load(); now != nil && now.Last == last {
		return last, nil
	}
	first, err := readFirst(ctx, a.store)
	if err != nil {
		return last, err
	}
	a.span.Store(&Span{First: first, Last: last})
	return last, nil
}

// readFirst returns the number of the first block in a store that has blocks.
func readFirst(ctx context.Context, store kv.Reader) (uint64, error) {
	first, err := store.Pointer(ctx, pointerFirst)
	if err != nil {
		return 0, fmt.Errorf("archive: first block: %w", err)
	}
	if len(first) != 8 {
		return 0, fmt.Errorf("%w: the first pointer has %d bytes", rows.ErrCorrupt, len(first))
	}
	return binary.BigEndian.Uint64(first), nil
}

// ChainID returns the chain ID as text, such as SN_MAIN.
func (a *Archive) ChainID() string { return a.chainID }

// Span returns the current range of blocks, nil if there are none.
func (a *Archive) Span() *Span { return a.span.Load() }

// Settled returns a reader of the settled blocks of a span.
func (a *Archive) Settled(span *Span) *Reader { return a.Over(a.store, *span, span.Last.Number) }

// Rows returns the rows of the settled blocks, on which a branch of the tip is overlaid.
func (a *Archive) Rows() kv.Reader { return a.store }

// Over returns a reader of a span. Blocks up to settled are read from the archive; rows overlays
// those of a branch of unsettled blocks.
func (a *Archive) Over(rows kv.Reader, span Span, settled uint64) *Reader {
	r := &Reader{rows: rows, headers: a.headers, settled: settled, span: span}
	if _, ok := a.store.(kv.Prefetcher); ok {
		r.ahead, _ = rows.(kv.Prefetcher)
	}
	return r
}

// Append settles blocks. They become visible together with the settled pointer. If they do not
// follow the last settled block and each other, Append returns rows.ErrNotNext and writes
// nothing. The very first block may be any. The blocks are durable after [Archive.Sync]. An
// earlier append that failed is completed first. Append must not be called concurrently.
func (a *Archive) Append(ctx context.Context, blocks ...*starknet.Block) error {
	encoded := make([]rows.Encoded, len(blocks))
	for i, block := range blocks {
		if err := Fits(block); err != nil {
			return err
		}
		encoded[i] = fresh{block}
	}
	return a.AppendEncoded(ctx, encoded...)
}

// fresh is a block that is encoded when its rows are put.
type fresh struct{ block *starknet.Block }

func (f fresh) Ref() chain.Ref       { return f.block.Ref() }
func (f fresh) Parent() common.Hash  { return common.Hash(f.block.Parent) }
func (f fresh) PutRows(to kv.Putter) { PutBlock(to, f.block) }

// AppendEncoded is [Archive.Append] for blocks that were encoded with [PutBlock].
func (a *Archive) AppendEncoded(ctx context.Context, blocks ...rows.Encoded) error {
	if len(blocks) == 0 {
		return nil
	}
	if err := a.Complete(ctx); err != nil {
		return err
	}
	batch := a.store.NewBatch()
	span := a.span.Load()
	refs := make([]chain.Ref, 0, len(blocks))
	for _, block := range blocks {
		ref := block.Ref()
		refs = append(refs, ref)
		if span == nil {
			span = &Span{First: ref.Number}
			batch.SetPointer(pointerFirst, binary.BigEndian.AppendUint64(nil, span.First))
		} else if ref.Number != span.Last.Number+1 || block.Parent() != span.Last.Hash {
			return fmt.Errorf("%w: block %s with parent %x comes after block %s", rows.ErrNotNext, ref, block.Parent(), span.Last)
		}
		block.PutRows(batch)
		span = &Span{First: span.First, Last: ref}
	}
	rows.SetSettled(batch, span.Last)
	if err := settling.Begin(ctx, a.store, Tables(), refs); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	a.doubtful = &appended{batch, span}
	return a.Complete(ctx)
}

// appended is what an append writes.
type appended struct {
	batch kv.Batch
	span  *Span // with its blocks
}

// Complete makes again the write of the last append, if it failed: its blocks may be settled in the
// store all the same. To read what is stored would not do: the store may still apply the write, but
// before the same one or another at the latest. Other blocks must not be written in the place of these
// before Complete has succeeded.
func (a *Archive) Complete(ctx context.Context) error {
	added := a.doubtful
	if added == nil {
		return nil
	}
	if err := a.store.Write(ctx, added.batch); err != nil {
		return fmt.Errorf("archive: append up to block %s: %w", added.span.Last, err)
	}
	a.span.Store(added.span)
	a.doubtful = nil
	return nil
}

// Sync makes everything that was appended durable.
func (a *Archive) Sync(ctx context.Context) error { return a.store.Sync(ctx) }

// Fits returns an [*UnfitError] if the format cannot hold a block.
func Fits(block *starknet.Block) error {
	if block.Number > rows.MaxNumber {
		return unfit("block %d: the format supports numbers up to %d", block.Number, uint64(rows.MaxNumber))
	}
	if n := len(block.Transactions); n > rows.MaxTransactions {
		return unfit("block %d has %d transactions, the format supports at most %d", block.Number, n, rows.MaxTransactions)
	}
	if n := block.EventCount(); n > groupEvents<<groupBits {
		return unfit("block %d has %d events, the format supports at most %d", block.Number, n, groupEvents<<groupBits)
	}
	return nil
}

// UnfitError is the error of a block that the format cannot hold.
type UnfitError struct{ text string }

func (e *UnfitError) Error() string { return e.text }

func unfit(format string, args ...any) error {
	return &UnfitError{"archive: " + fmt.Sprintf(format, args...)}
}

// PutBlock puts the rows of a block for which [Fits] returned nil.
func PutBlock(to kv.Putter, block *starknet.Block) {
	partition := rows.Chunk(block.Number)
	to.Put(headers, partition[:], block.Number, encodeHeader(block))
	to.Put(transactions, partition[:], block.Number, encodeTransactions(block))
	eventRows(block, func(group uint64, row []byte) {
		to.Put(events, partition[:], block.Number<<groupBits|group, row)
	})
	rows.PutBlockHash(to, blockHashes, block.Hash[:], block.Number)
	for i := range block.Transactions {
		rows.PutTransactionHash(to, txHashes, block.Transactions[i].Hash[:], rows.Place{Number: block.Number, Index: i})
	}
	for term, row := range blockPostings(block).Rows() {
		to.Put(eventPostings, term[:], block.Number, row)
	}
}
