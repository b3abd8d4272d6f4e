// Package archive is the settled history of a Starknet network: its blocks, its
// transactions with their receipts, its events, and the index by which events are
// found.
//
// Rows are append-only; docs/format.md draws every one. One writer appends blocks
// with [Archive.Append]; any number of readers read at the same time and never
// wait for it. A network's first block may be any block: what lies before it is
// not held, and asking for it is answered with an [*BeforeFirst].
package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

// Format is the version of docs/format.md that this package reads and writes.
const Format = "ashlar-starknet-1"

// cachedHeaders is how many decoded headers are kept, about 700 bytes each.
const cachedHeaders = 4096

// mostChainID is the length of the longest chain ID: it must fit a felt.
const mostChainID = 31

var (
	// ErrOtherChain says that the archive holds another chain than expected.
	ErrOtherChain = errors.New("archive: holds another chain")
	// ErrChainID says that a text cannot be a chain's ID.
	ErrChainID = errors.New("archive: no chain ID")
)

// BeforeFirst says that a block lies before the first that the network holds.
type BeforeFirst struct{ Number, First uint64 }

func (e *BeforeFirst) Error() string {
	return fmt.Sprintf("block %d is not held: this network begins with block %d", e.Number, e.First)
}

// Is makes a BeforeFirst a kind of rows.ErrNotFound.
func (e *BeforeFirst) Is(kind error) bool { return kind == rows.ErrNotFound }

// Archive is the settled history of one network.
type Archive struct {
	store   kv.Store
	chainID string
	headers *lru.Cache[uint64, *Header]
	span    atomic.Pointer[Span] // nil while there are no blocks
}

// Span is what an archive holds: all blocks from the first to the last.
type Span struct {
	First uint64
	Last  chain.Ref
}

// Accept says whether a store may become an archive of the chain with an ID, or of
// any that it is where the ID is empty. It is asked before anything is written.
func Accept(ctx context.Context, store kv.Reader, chainID string) error {
	if chainID != "" {
		if err := checkChainID(chainID); err != nil {
			return err
		}
	}
	err := rows.CheckFormat(ctx, store, Format)
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

// Create makes an archive of a chain in an empty store, or opens the one that is
// there if it is of the same chain; else it returns ErrOtherChain.
func Create(ctx context.Context, store kv.Store, chainID string) (*Archive, error) {
	if err := checkChainID(chainID); err != nil {
		return nil, err
	}
	if err := Accept(ctx, store, chainID); err != nil {
		return nil, err
	}
	if _, err := rows.Format(ctx, store); !errors.Is(err, kv.ErrNotFound) {
		return Open(ctx, store) // which meets the error again, if it is one
	}
	batch := store.NewBatch()
	rows.SetFormat(batch, Format)
	batch.SetPointer(pointerChain, []byte(chainID))
	if err := store.Write(ctx, batch); err != nil {
		return nil, err
	}
	return Open(ctx, store)
}

// checkChainID says what is wrong with a chain ID: clients take it for a felt
// that spells a short text.
func checkChainID(id string) error {
	if id == "" || len(id) > mostChainID {
		return fmt.Errorf("%w: %q has %d characters, expected 1 to %d", ErrChainID, id, len(id), mostChainID)
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%w: %q holds %q, expected printable ASCII without spaces", ErrChainID, id, c)
		}
	}
	return nil
}

// Open opens the archive that a store holds, or returns kv.ErrNotFound where
// there is none.
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

// openSpan makes the archive that a store holds, and reads what its pointers say
// of its span; nil where there are no blocks.
func openSpan(ctx context.Context, store kv.Store) (*Archive, *Span, error) {
	if err := rows.CheckFormat(ctx, store, Format); err != nil {
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
	first, err := store.Pointer(ctx, pointerFirst)
	if err != nil {
		return nil, nil, fmt.Errorf("archive: first block: %w", err)
	}
	if len(first) != 8 {
		return nil, nil, fmt.Errorf("%w: the first pointer has %d bytes", rows.ErrCorrupt, len(first))
	}
	return a, &Span{First: binary.BigEndian.Uint64(first), Last: last}, nil
}

// ChainID is the chain's ID as text, like SN_MAIN.
func (a *Archive) ChainID() string { return a.chainID }

// Span is what the archive holds now; nil where it has no blocks.
func (a *Archive) Span() *Span { return a.span.Load() }

// Settled reads the settled blocks of a span.
func (a *Archive) Settled(span *Span) *Reader { return a.Over(a.store, *span, span.Last.Number) }

// Rows are the rows of the settled blocks, for a branch of unsettled blocks to be laid over.
func (a *Archive) Rows() kv.Reader { return a.store }

// Over reads the blocks of a span in rows: those of the archive up to settled, and
// above them those of a branch of unsettled blocks.
func (a *Archive) Over(rows kv.Reader, span Span, settled uint64) *Reader {
	return &Reader{rows: rows, headers: a.headers, settled: settled, span: span}
}

// Append settles blocks: all of them, and the settled pointer with them, become
// visible at once. They must follow one another and the last settled block, else
// rows.ErrNotNext; nothing is written then. The first of all may be any block.
// Durable they are once [Archive.Sync] returns. One call at a time.
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

// fresh is a block whose rows are made when they are wanted.
type fresh struct{ block *starknet.Block }

func (f fresh) Ref() chain.Ref       { return f.block.Ref() }
func (f fresh) Parent() common.Hash  { return common.Hash(f.block.Parent) }
func (f fresh) PutRows(to kv.Putter) { PutBlock(to, f.block) }

// AppendEncoded is [Archive.Append] for blocks whose rows [PutBlock] has made before.
func (a *Archive) AppendEncoded(ctx context.Context, blocks ...rows.Encoded) error {
	if len(blocks) == 0 {
		return nil
	}
	batch := a.store.NewBatch()
	span := a.span.Load()
	for _, block := range blocks {
		ref := block.Ref()
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
	if err := a.store.Write(ctx, batch); err != nil {
		return fmt.Errorf("archive: append up to block %s: %w", span.Last, err)
	}
	a.span.Store(span)
	return nil
}

// Sync returns when everything that was appended is durable.
func (a *Archive) Sync(ctx context.Context) error { return a.store.Sync(ctx) }

// Fits says whether the format can hold a block.
func Fits(block *starknet.Block) error {
	if block.Number > rows.MostNumber {
		return fmt.Errorf("archive: block %d: the format holds numbers up to %d", block.Number, uint64(rows.MostNumber))
	}
	if n := len(block.Transactions); n > rows.MostTransactions {
		return fmt.Errorf("archive: block %d has %d transactions, the format holds %d", block.Number, n, rows.MostTransactions)
	}
	if n := block.EventCount(); n > groupEvents<<groupBits {
		return fmt.Errorf("archive: block %d has %d events, the format holds %d", block.Number, n, groupEvents<<groupBits)
	}
	return nil
}

// PutBlock puts the rows of a block that [Fits].
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
	blockPostings(block).Put(to, eventPostings, block.Number)
}
