// Package archive is the settled history of an EVM network: every block, receipt
// and log, and every version of every account, slot, code and trie node.
//
// Rows are append-only and versioned by block number, so "as of block N" is the
// newest version at or below N, at the same cost for the latest block and the
// first. docs/format.md draws every row.
//
// One writer appends blocks with [Archive.Append]; any number of readers read
// at the same time and never wait for it. What a reader sees of block N does not
// change while later blocks are appended: so a question that is asked "as of N"
// from beginning to end gets an answer of one block.
package archive

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// format is the version of docs/format.md that this package reads and writes.
const format = "ashlar-evm-1"

var (
	// ErrCorrupt says that a stored row is not what was written.
	ErrCorrupt = errors.New("archive: corrupt")
	// ErrNotFound says that there is no such block or transaction.
	ErrNotFound = errors.New("archive: not found")
	// ErrNotNext says that a block does not follow the settled one.
	ErrNotNext = errors.New("archive: block does not follow the last settled one")
	// ErrOtherChain says that the archive holds another chain than expected.
	ErrOtherChain = errors.New("archive: holds another chain")
	// ErrFormat says that the archive was written by another version.
	ErrFormat = errors.New("archive: unknown format")
)

const (
	cachedHeaders   = 4096     // decoded headers, about 1 KiB each
	cachedCodeBytes = 32 << 20 // contract code
)

// Archive is the settled history of one network.
type Archive struct {
	store   kv.Store
	genesis *core.Genesis // without its accounts
	settled atomic.Pointer[settled]
	headers *lru.Cache[uint64, *Header]
	codes   *lru.SizeConstrainedCache[common.Hash, []byte]
}

// settled is the last settled block.
type settled struct {
	chain.Ref
	totalDifficulty *big.Int
}

// Create makes an archive of a chain in an empty store, or opens the one that is
// there if it is of the same chain; else it returns ErrOtherChain. A new
// archive has no blocks: the genesis is the first to be appended.
func Create(ctx context.Context, store kv.Store, genesis *core.Genesis) (*Archive, error) {
	_, err := store.Pointer(ctx, pointerFormat)
	if err == nil {
		return openFor(ctx, store, genesis)
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	bare := *genesis
	bare.Alloc = types.GenesisAlloc{}
	if bare.Difficulty == nil { // its JSON could not be read again
		bare.Difficulty = genesis.ToBlock().Difficulty()
	}
	encoded, err := json.Marshal(&bare)
	if err != nil {
		return nil, fmt.Errorf("archive: encode genesis: %w", err)
	}
	batch := store.NewBatch()
	batch.SetPointer(pointerFormat, []byte(format))
	batch.SetPointer(pointerGenesis, encoded)
	if err := store.Write(ctx, batch); err != nil {
		return nil, err
	}
	return Open(ctx, store)
}

// openFor opens an archive and checks that it is of the expected chain. The
// configuration may differ in forks to come.
func openFor(ctx context.Context, store kv.Store, genesis *core.Genesis) (*Archive, error) {
	a, err := Open(ctx, store)
	if err != nil {
		return nil, err
	}
	first, err := a.Header(ctx, 0)
	if errors.Is(err, ErrNotFound) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if want := genesis.ToBlock().Hash(); first.Hash != want {
		return nil, fmt.Errorf("%w: its genesis is %#x, expected %#x", ErrOtherChain, first.Hash, want)
	}
	return a, nil
}

// Open opens the archive that a store holds, or returns kv.ErrNotFound where
// there is none.
func Open(ctx context.Context, store kv.Store) (*Archive, error) {
	version, err := store.Pointer(ctx, pointerFormat)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if string(version) != format {
		return nil, fmt.Errorf("%w: it is %q, this version reads %q", ErrFormat, version, format)
	}
	encoded, err := store.Pointer(ctx, pointerGenesis)
	if err != nil {
		return nil, fmt.Errorf("archive: genesis: %w", err)
	}
	a := &Archive{
		store:   store,
		genesis: new(core.Genesis),
		headers: lru.NewCache[uint64, *Header](cachedHeaders),
		codes:   lru.NewSizeConstrainedCache[common.Hash, []byte](cachedCodeBytes),
	}
	if err := json.Unmarshal(encoded, a.genesis); err != nil {
		return nil, fmt.Errorf("%w: genesis: %v", ErrCorrupt, err)
	}
	return a, a.loadSettled(ctx)
}

func (a *Archive) loadSettled(ctx context.Context) error {
	pointer, err := a.store.Pointer(ctx, pointerSettled)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("archive: settled: %w", err)
	}
	if len(pointer) != 8+common.HashLength {
		return fmt.Errorf("%w: the settled pointer has %d bytes", ErrCorrupt, len(pointer))
	}
	ref := chain.Ref{Number: binary.BigEndian.Uint64(pointer), Hash: common.Hash(pointer[8:])}
	header, err := a.Header(ctx, ref.Number)
	if err != nil {
		return fmt.Errorf("archive: settled block: %w", err)
	}
	if header.Hash != ref.Hash {
		return fmt.Errorf("%w: the settled pointer names block %s, its header has hash %x", ErrCorrupt, ref, header.Hash)
	}
	a.settled.Store(&settled{Ref: ref, totalDifficulty: header.TotalDifficulty})
	return nil
}

// encodeRef is the value of the settled pointer.
func encodeRef(ref chain.Ref) []byte {
	return append(binary.BigEndian.AppendUint64(nil, ref.Number), ref.Hash[:]...)
}

// Genesis is the chain's genesis without its accounts. The caller must not change it.
func (a *Archive) Genesis() *core.Genesis { return a.genesis }

// Settled is the last settled block; false when there is none yet.
func (a *Archive) Settled() (chain.Ref, bool) {
	if s := a.settled.Load(); s != nil {
		return s.Ref, true
	}
	return chain.Ref{}, false
}

// Header returns the header of a block, or ErrNotFound. The caller must not change it.
func (a *Archive) Header(ctx context.Context, number uint64) (*Header, error) {
	if header, ok := a.headers.Get(number); ok {
		return header, nil
	}
	row, err := a.row(ctx, headers, number, nil)
	if err != nil {
		return nil, err
	}
	header, err := decodeHeader(row)
	if err != nil {
		return nil, err
	}
	a.headers.Add(number, header)
	return header, nil
}

// Body returns the body of a block, or ErrNotFound. The body refers to buffer,
// which the row is appended to.
func (a *Archive) Body(ctx context.Context, number uint64, buffer []byte) (*Body, error) {
	row, err := a.row(ctx, bodies, number, buffer)
	if err != nil {
		return nil, err
	}
	return decodeBody(row[len(buffer):])
}

// Receipts returns the receipts of a block, or ErrNotFound. They refer to
// buffer, which the row is appended to.
func (a *Archive) Receipts(ctx context.Context, number uint64, buffer []byte) (*Receipts, error) {
	row, err := a.row(ctx, receipts, number, buffer)
	if err != nil {
		return nil, err
	}
	return decodeReceipts(row[len(buffer):])
}

func (a *Archive) row(ctx context.Context, table *kv.Table, number uint64, buffer []byte) ([]byte, error) {
	partition := chunk(number)
	row, err := a.store.Get(ctx, table, partition[:], number, buffer)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: block %d", ErrNotFound, number)
	}
	return row, err
}

// FindBlock returns the number of the block with a hash, or ErrNotFound.
func (a *Archive) FindBlock(ctx context.Context, hash common.Hash) (uint64, error) {
	cursor := a.store.Scan(ctx, blockHashes, hash[:hashPrefixBytes], 0, ^uint64(0))
	defer cursor.Close()
	for ok := cursor.Next(); ok; ok = cursor.Next() {
		header, err := a.Header(ctx, cursor.Sort())
		if err != nil {
			return 0, err
		}
		if header.Hash == hash {
			return header.Number.Uint64(), nil
		}
	}
	if err := cursor.Close(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%w: block %x", ErrNotFound, hash)
}

// A Place is where a transaction is.
type Place struct {
	Number uint64
	Index  int
}

// FindTransaction calls found with every place where a transaction with this
// hash may be, until found says that it was there. There is rarely more than one,
// and none for nearly every hash that no transaction has.
func (a *Archive) FindTransaction(ctx context.Context, hash common.Hash, found func(Place) (bool, error)) error {
	cursor := a.store.Scan(ctx, txHashes, hash[:hashPrefixBytes], 0, ^uint64(0))
	defer cursor.Close()
	for ok := cursor.Next(); ok; ok = cursor.Next() {
		place := Place{Number: cursor.Sort() >> indexBits, Index: int(cursor.Sort() & (1<<indexBits - 1))}
		if done, err := found(place); done || err != nil {
			return err
		}
	}
	return cursor.Close()
}

// Postings returns a cursor over the blocks, from one to another, in which a term
// occurs. It must be closed.
func (a *Archive) Postings(ctx context.Context, term Term, from, to uint64) Postings {
	return Postings{a.store.Scan(ctx, postings, term[:], from, to)}
}

// Postings steps through the blocks in which a term occurs, in ascending order.
type Postings struct{ kv.Cursor }

// Block is the current block's number.
func (p Postings) Block() uint64 { return p.Sort() }

// Positions appends the positions in the current block of the term's logs to dst, in ascending order.
func (p Postings) Positions(dst []uint32) ([]uint32, error) { return decodePositions(p.Value(), dst) }

// code returns the contract code with a hash.
func (a *Archive) code(ctx context.Context, hash common.Hash) ([]byte, error) {
	if code, ok := a.codes.Get(hash); ok {
		return code, nil
	}
	code, err := a.store.Get(ctx, codes, hash[:], 0, nil)
	if err != nil {
		return nil, err
	}
	code = slices.Clip(code)
	a.codes.Add(hash, code)
	return code, nil
}
