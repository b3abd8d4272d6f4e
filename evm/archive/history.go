package archive

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/kv/newest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

const (
	cachedHeaders   = 8192     // decoded headers, about 1 KiB each: more than a day of 12-second blocks
	cachedUnsettled = 256      // headers of a branch
	cachedCodeBytes = 32 << 20 // contract code
	// cachedCodeEntryBytes is the memory of a cache entry without the code: 142 to 200
	// bytes, depending on how full the map is. Many codes are shorter than that, such as
	// those of delegated accounts (EIP-7702), with 23 bytes.
	cachedCodeEntryBytes = 200
	// cachedNodeEntryBytes is the same for a trie node.
	cachedNodeEntryBytes = 200
)

// DefaultStateCache is the memory of [Archive.CacheState] that an archive begins with.
const DefaultStateCache = 32 << 20

// History reads the blocks and state of an [Archive], or of a branch of unsettled blocks on
// top of it. It is safe for concurrent use.
type History struct {
	rows    kv.Reader
	store   kv.Reader     // the settled rows
	ahead   kv.Prefetcher // of rows; nil if reads take no round trips, or what was read is not kept
	distant bool          // reads of store take round trips
	sourced *sourcedRows  // rows, if some are read from a source; else nil
	form    form
	extent  *atomic.Pointer[Extent]
	began   uint64 // block with whose state the archive began; 0: the genesis
	settled uint64 // the last block whose rows are in store, and whose header is in headers
	// contents: blocks above settled have only contents.
	contents bool
	headers  *lru.Cache[uint64, *Header]
	// numbers maps hashes of blocks whose headers were read to their numbers. Entries are
	// hints: this history may have another block at that number, or none.
	numbers *lru.Cache[common.Hash, uint64]
	// unsettled caches headers of the branch, separate from those of other branches.
	unsettled *lru.Cache[uint64, *Header]
	codes     *lru.SizeConstrainedCache[common.Hash, []byte]
	nodes     *nodeCache
	newest    *newest.Cache // of settled accounts and slots; nil where a reader of a cluster caches rows
}

// nodeCache holds trie nodes by their hash, so nothing in it is ever out of date.
type nodeCache = lru.SizeConstrainedCache[common.Hash, []byte]

func newNodeCache(bytes int64) *nodeCache {
	return lru.NewSizeConstrainedCacheWithKeySize[common.Hash, []byte](uint64(bytes), func(common.Hash) uint64 { return cachedNodeEntryBytes })
}

// newHistory returns the history of settled rows.
func newHistory(rows kv.Reader, f form) History {
	h := History{
		extent:  new(atomic.Pointer[Extent]),
		form:    f,
		settled: math.MaxUint64,
		headers: lru.NewCache[uint64, *Header](cachedHeaders),
		numbers: lru.NewCache[common.Hash, uint64](cachedHeaders),
		codes: lru.NewSizeConstrainedCacheWithKeySize[common.Hash, []byte](
			cachedCodeBytes, func(common.Hash) uint64 { return cachedCodeEntryBytes }),
		nodes: newNodeCache(DefaultStateCache / 2),
	}
	h.extent.Store(new(Extent))
	_, h.distant = rows.(kv.Distant)
	if ahead, ok := rows.(kv.Prefetcher); ok {
		h.ahead = ahead
	} else {
		h.newest = newest.New(rows, DefaultStateCache/2, accounts, slots)
		rows = h.newest
	}
	h.rows, h.store = rows, rows
	return h
}

// Rows returns the settled rows, for [History.Over].
func (h *History) Rows() kv.Reader { return h.store }

// Over returns the history in rows: the blocks of h up to settled, and above them a branch of
// unsettled blocks encoded by [History.Encode].
func (h *History) Over(rows kv.Reader, settled uint64) *History {
	ahead := h.ahead
	if ahead != nil {
		ahead, _ = rows.(kv.Prefetcher)
	}
	return &History{
		rows: rows, store: h.store, sourced: h.sourced, ahead: ahead, distant: h.distant, form: h.form, extent: h.extent, began: h.began, settled: settled,
		headers: h.headers, numbers: h.numbers, unsettled: lru.NewCache[uint64, *Header](cachedUnsettled), codes: h.codes,
		nodes: h.nodes,
	}
}

// OverContents is [History.Over] for blocks that were encoded by [EncodeContents]. Their state
// and their total difficulty are not known.
func (h *History) OverContents(rows kv.Reader, settled uint64) *History {
	over := h.Over(rows, settled)
	over.contents = true
	return over
}

// ofBlock returns the reader for the rows of a block. A settled block is read from the
// store, not from the branch.
func (h *History) ofBlock(number uint64) kv.Reader {
	if number > h.settled {
		return h.rows
	}
	return h.store
}

// Header returns the header of a block, or ErrNotFound, or a [*Pruned], as all methods that
// read a block. The caller must not modify it.
func (h *History) Header(ctx context.Context, number uint64) (*Header, error) {
	known := h.headerCache(number)
	if header, ok := known.Get(number); ok && (header.TotalDifficulty != nil || !h.Stores(number)) {
		return header, nil
	}
	stored := h.Stores(number) // and still after the row was read, or it may be from the source
	row, err := rows.OfBlock(ctx, h.ofBlock(number), headers, number, nil)
	if err != nil {
		return nil, h.orPruned(number, err)
	}
	header, err := decodeHeader(row)
	if err != nil {
		return nil, err
	}
	if !stored || !h.Stores(number) {
		header.TotalDifficulty = nil // not known
	}
	known.Add(number, header)
	h.numbers.Add(header.Hash, number)
	return header, nil
}

// Stores reports whether a block of the history was executed here: its rows are complete, and
// not read from a source.
func (h *History) Stores(number uint64) bool {
	if number > h.settled {
		return !h.contents
	}
	return h.sourced == nil || h.sourced.archive.Stores(number)
}

// headerCache returns the cache for the header of a block, or nil.
func (h *History) headerCache(number uint64) *lru.Cache[uint64, *Header] {
	if number > h.settled {
		return h.unsettled
	}
	return h.headers
}

// Body returns the body of a block, or ErrNotFound. Its row is appended to buffer, which
// the body then refers to.
func (h *History) Body(ctx context.Context, number uint64, buffer []byte) (*Body, error) {
	row, err := rows.OfBlock(ctx, h.ofBlock(number), bodies, number, buffer)
	if err != nil {
		return nil, h.orPruned(number, err)
	}
	body, err := decodeBody(row[len(buffer):])
	if err != nil {
		return nil, err
	}
	return &body, nil
}

// Receipts returns the receipts of a block, or ErrNotFound. Their row is appended to
// buffer, which the receipts then refer to.
func (h *History) Receipts(ctx context.Context, number uint64, buffer []byte) (*Receipts, error) {
	row, err := rows.OfBlock(ctx, h.ofBlock(number), receipts, number, buffer)
	if err != nil {
		return nil, h.orPruned(number, err)
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
	row, err := rows.OfBlock(ctx, h.ofBlock(number), accessLists, number, nil)
	if errors.Is(err, ErrNotFound) && !h.Stores(number) {
		header, err := h.Header(ctx, number)
		if err == nil && header.BlockAccessListHash != nil {
			list, err := h.sourced.source.AccessList(ctx, header.Header)
			return list, h.sourced.archive.Explain(number, OfBlock, err)
		}
	}
	return row, h.orPruned(number, err)
}

// HoldBody returns the body of a block without copying it, or ErrNotFound. The body is
// valid until held is closed.
func (h *History) HoldBody(ctx context.Context, number uint64) (body Body, held io.Closer, err error) {
	cursor, err := rows.Hold(ctx, h.ofBlock(number), bodies, number)
	if err != nil {
		return body, nil, h.orPruned(number, err)
	}
	if body, err = decodeBody(cursor.Value()); err != nil {
		return body, nil, errors.Join(err, cursor.Close())
	}
	return body, cursor, nil
}

// HoldReceipts is [History.HoldBody] for receipts.
func (h *History) HoldReceipts(ctx context.Context, number uint64) (all Receipts, held io.Closer, err error) {
	cursor, err := rows.Hold(ctx, h.ofBlock(number), receipts, number)
	if err != nil {
		return all, nil, h.orPruned(number, err)
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
		if h.Ahead() { // most who look for a block want all of it
			wants := h.Wants()
			wants.Header(candidate)
			wants.Body(candidate)
			wants.Read(ctx)
		}
		header, err := h.Header(ctx, candidate)
		if err != nil {
			return false, err
		}
		number, known = candidate, header.Hash == hash
		return known, nil
	}
	if guess, ok := h.numbers.Get(hash); ok {
		if found, _ := check(guess); found { // ignore the error: the hint may be wrong, and a real error will recur
			return number, nil
		}
	}
	first := h.firstFound()
	err := rows.FindBlock(ctx, h.rows, blockHashes, hash[:], first, check)
	if err == nil && !known && first > 0 { // the genesis is stored in any case
		_, err = check(0)
	}
	if err == nil && !known {
		return h.findSourced(ctx, hash)
	}
	return number, err
}

// A Place is the position of a transaction.
type Place = rows.Place

// FindTransaction calls found for each candidate position of a transaction until found
// returns true. There is rarely more than one candidate, and almost never one if the
// transaction does not exist.
func (h *History) FindTransaction(ctx context.Context, hash common.Hash, found func(Place) (bool, error)) error {
	if h.sourced == nil {
		return h.FindStoredTransaction(ctx, hash, found)
	}
	done := false
	err := h.FindStoredTransaction(ctx, hash, func(place Place) (_ bool, err error) {
		done, err = found(place)
		return done, err
	})
	if err != nil || done {
		return err
	}
	return h.findSourcedTransaction(ctx, hash, found)
}

// FindStoredTransaction is FindTransaction without the blocks that are read from a [Source].
func (h *History) FindStoredTransaction(ctx context.Context, hash common.Hash, found func(Place) (bool, error)) error {
	return rows.FindTransaction(ctx, h.rows, txHashes, hash[:], h.firstFound(), found)
}

// firstFound returns the first block that is looked for by a hash. A reader of a cluster keeps that
// there is none, which must not be said of blocks that can be added later, see [Older].
func (h *History) firstFound() uint64 {
	if h.ahead == nil {
		return 0
	}
	return h.Extent().Blocks
}

// Postings returns the positions of a log term in a range of blocks.
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
