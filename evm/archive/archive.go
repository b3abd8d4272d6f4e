// Package archive stores the settled history of an EVM network: every block, receipt
// and log, and every version of every account, slot, code and trie node.
//
// Rows are versioned by block number, so "as of block N" is the newest version at or
// below N, at the same cost for the latest block and the first. Only [Rewind] and the
// packages join and window remove rows. docs/format.md draws them.
//
// One writer appends blocks with [Archive.Append]. Any number of readers read concurrently
// and never wait for it. The data of block N never changes, so a request that reads only
// "as of N" sees a consistent state.
package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm/genesis"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// Feature is an optional part of an archive. It is chosen when the archive is created.
type Feature string

// TraceIndex is the index of who takes part in which traces.
const TraceIndex Feature = "traces"

var (
	// ErrCorrupt means that a stored row is not what was written.
	ErrCorrupt = rows.ErrCorrupt
	// ErrNotFound means that the block or transaction does not exist.
	ErrNotFound = rows.ErrNotFound
	// ErrNotNext means that a block does not follow the settled one.
	ErrNotNext = rows.ErrNotNext
	// ErrFormat means that the archive was written by another version.
	ErrFormat = rows.ErrFormat
	// ErrStarting means that the state with which the archive begins is not complete.
	ErrStarting = rows.ErrStarting
	// ErrOtherChain means that the archive holds another chain than expected.
	ErrOtherChain = errors.New("archive: holds another chain")
)

// wantedGenesis says what to do about ErrOtherChain.
const wantedGenesis = "(want the genesis with which the network was created, or remove the network to begin it anew)"

// Archive is the settled history of one network.
type Archive struct {
	History
	store   kv.Store
	genesis *core.Genesis // without its accounts
	settled atomic.Pointer[settled]

	// Used by the writer only.
	steps    rememberedSteps // by Append
	batch    kv.Batch        // of every append; nil before the first
	doubtful *appended       // of the batch, if its write failed; nil if it did not
}

// settled is the last settled block.
type settled struct {
	chain.Ref
	totalDifficulty *big.Int
}

// Create creates an archive of a chain in an empty store, or opens an existing one of the
// same chain; if it holds another chain, the error is ErrOtherChain. A new archive has the
// features, and no blocks: the genesis must be appended first. An archive that still has no
// blocks counts as new. The schedule of future forks is taken from genesis.
func Create(ctx context.Context, store kv.Store, genesis *core.Genesis, features ...Feature) (*Archive, error) {
	if err := Accept(ctx, store, genesis); err != nil {
		return nil, err
	}
	_, begun, err := rows.Settled(ctx, store)
	if err != nil {
		return nil, err
	}
	if begun {
		if err := reschedule(ctx, store, genesis); err != nil {
			return nil, err
		}
		return Open(ctx, store)
	}
	if err := writeGenesis(ctx, store, genesis, newForm(features)); err != nil {
		return nil, err
	}
	return Open(ctx, store)
}

// writeGenesis writes the format and the genesis pointer.
func writeGenesis(ctx context.Context, store kv.Store, genesis *core.Genesis, f form) error {
	encoded, err := encodeGenesis(genesis)
	if err != nil {
		return err
	}
	batch := store.NewBatch()
	rows.SetFormat(batch, f.String())
	batch.SetPointer(pointerGenesis, encoded)
	return store.Write(ctx, batch)
}

// reschedule stores the configuration of a genesis, which may have other future forks:
// public networks schedule theirs after an archive was created. It returns ErrOtherChain if
// a fork differs that already applies to settled blocks.
func reschedule(ctx context.Context, store kv.Store, genesis *core.Genesis) error {
	a, err := Open(ctx, store)
	if err != nil {
		return err
	}
	stored, err := encodeGenesis(a.genesis)
	if err != nil {
		return err
	}
	wanted, err := encodeGenesis(genesis)
	if err != nil || bytes.Equal(stored, wanted) {
		return err
	}
	head, _ := a.Settled()
	header, err := a.Header(ctx, head.Number)
	if err != nil {
		return err
	}
	if err := CheckSchedule(a.genesis.Config, genesis.Config, head.Number, header.Time); err != nil {
		return fmt.Errorf("%w %s", err, wantedGenesis)
	}
	return writeGenesis(ctx, store, genesis, a.form)
}

// CheckSchedule returns an ErrOtherChain if the last settled block, which has a number and a time, is under another
// schedule of forks than expected, or of another chain ID, which no hash has in it.
func CheckSchedule(stored, given *params.ChainConfig, settled, time uint64) error {
	if a, b := stored.ChainID, given.ChainID; a != nil && b != nil && a.Cmp(b) != 0 {
		return fmt.Errorf("%w: its chain ID is %v, and %v is given", ErrOtherChain, a, b)
	}
	if cause := stored.CheckCompatible(given, settled, time); cause != nil {
		return scheduleError(settled, cause)
	}
	return nil
}

// scheduleError leaves out what the cause suggests, a rewind of geth's own database.
func scheduleError(settled uint64, cause *params.ConfigCompatError) error {
	stored, given := "none", "none"
	switch {
	case cause.StoredTime != nil || cause.NewTime != nil:
		if cause.StoredTime != nil {
			stored = strconv.FormatUint(*cause.StoredTime, 10)
		}
		if cause.NewTime != nil {
			given = strconv.FormatUint(*cause.NewTime, 10)
		}
	default:
		if cause.StoredBlock != nil {
			stored = cause.StoredBlock.String()
		}
		if cause.NewBlock != nil {
			given = cause.NewBlock.String()
		}
	}
	other := fmt.Errorf("%w: its blocks up to %d are under another schedule of forks: %s", ErrOtherChain, settled, cause.What)
	if stored == given { // what differs has no block
		return other
	}
	return fmt.Errorf("%w: %s is stored, %s is given", other, stored, given)
}

// encodeGenesis returns the genesis pointer: its JSON without the accounts.
func encodeGenesis(genesis *core.Genesis) ([]byte, error) {
	bare := *genesis
	bare.Alloc = types.GenesisAlloc{}
	if bare.Difficulty == nil { // its JSON could not be decoded
		bare.Difficulty = genesis.ToBlock().Difficulty()
	}
	encoded, err := json.Marshal(&bare)
	if err != nil {
		return nil, fmt.Errorf("archive: encode genesis: %w", err)
	}
	return encoded, nil
}

// readGenesis returns the genesis of a store, without its accounts. A public network has the schedule of this
// version: one from before a fork was scheduled would make its blocks invalid. That needs the hash of block 0.
// If its row is missing or damaged, which checks report, the configuration is the stored one.
func readGenesis(ctx context.Context, store kv.Reader) (*core.Genesis, error) {
	encoded, err := store.Pointer(ctx, pointerGenesis)
	if err != nil {
		return nil, fmt.Errorf("archive: genesis: %w", err)
	}
	decoded, err := decodeGenesis(encoded)
	if err != nil {
		return nil, err
	}
	partition := rows.Chunk(0)
	row, err := store.Get(ctx, headers, partition[:], 0, nil)
	switch {
	case errors.Is(err, kv.ErrUnavailable):
		return nil, fmt.Errorf("archive: block 0: %w", err)
	case err != nil:
		return decoded, ctx.Err()
	}
	if first, err := decodeHeader(row); err == nil {
		if known, ok := genesis.Schedule(first.Hash); ok {
			decoded.Config = known
		}
	}
	return decoded, nil
}

func decodeGenesis(pointer []byte) (*core.Genesis, error) {
	genesis := new(core.Genesis)
	if err := json.Unmarshal(pointer, genesis); err != nil {
		return nil, fmt.Errorf("%w: genesis: %v", ErrCorrupt, err)
	}
	if genesis.Config == nil {
		return nil, fmt.Errorf("%w: the genesis has no config", ErrCorrupt)
	}
	return genesis, nil
}

// Accept checks a store without changing it. It returns ErrFormat if Open cannot read the
// store, and ErrStarting if [Begin] must continue first. If a genesis is given, it returns
// ErrOtherChain if the store holds another chain. The configurations may differ in future
// forks. An empty store, or one without blocks, is accepted.
func Accept(ctx context.Context, store kv.Reader, genesis *core.Genesis) error {
	err := checkComplete(ctx, store)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := checkStarted(ctx, store); err != nil || genesis == nil {
		return err
	}
	return acceptGenesis(ctx, store, genesis)
}

// checkComplete returns kv.ErrNotFound if a store is empty, and an error if it cannot be read,
// or a join or a rewind of it is not complete.
func checkComplete(ctx context.Context, store kv.Reader) error {
	if err := rows.CheckFormat(ctx, store, formats()...); err != nil {
		return err
	}
	if err := checkJoined(ctx, store); err != nil {
		return err
	}
	return rows.CheckComplete(ctx, store, formats()...)
}

// acceptGenesis returns ErrOtherChain if a store has blocks of another genesis.
func acceptGenesis(ctx context.Context, store kv.Reader, genesis *core.Genesis) error {
	partition := rows.Chunk(0)
	row, err := store.Get(ctx, headers, partition[:], 0, nil)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	first, err := decodeHeader(row)
	if err != nil {
		return err
	}
	if want := genesis.ToBlock().Hash(); first.Hash != want {
		return fmt.Errorf("%w: its genesis is %#x, expected %#x %s", ErrOtherChain, first.Hash, want, wantedGenesis)
	}
	return nil
}

// Open opens the archive in a store, or returns kv.ErrNotFound if there is none.
func Open(ctx context.Context, store kv.Store) (*Archive, error) {
	a, err := OpenUnchecked(ctx, store)
	if err != nil {
		return nil, err
	}
	return a, a.loadSettled(ctx)
}

// OpenUnchecked is Open for checkers: no row that is missing or damaged can prevent it from
// opening. Such an archive does not know its settled block, and cannot be appended to.
func OpenUnchecked(ctx context.Context, store kv.Store) (*Archive, error) {
	if err := checkComplete(ctx, store); err != nil {
		return nil, err
	}
	if err := checkStarted(ctx, store); err != nil {
		return nil, err
	}
	f, err := formOf(ctx, store)
	if err != nil {
		return nil, err
	}
	genesis, err := readGenesis(ctx, store)
	if err != nil {
		return nil, err
	}
	began, _, _, err := readStart(ctx, store)
	if err != nil {
		return nil, err
	}
	a := &Archive{History: newHistory(store, f), store: store, genesis: genesis}
	a.began = began.Number
	return a, a.loadExtent(ctx)
}

func (a *Archive) loadSettled(ctx context.Context) error {
	ref, ok, err := rows.Settled(ctx, a.store)
	if !ok || err != nil {
		return err
	}
	if err := a.loadExtent(ctx); err != nil {
		return err
	}
	header, err := a.Header(ctx, ref.Number)
	if err != nil {
		return fmt.Errorf("archive: settled block: %w", err)
	}
	if header.Hash != ref.Hash {
		return fmt.Errorf("%w: the settled pointer names block %s, its header has hash %x", ErrCorrupt, ref, header.Hash)
	}
	if a.newest != nil {
		a.newest.Reset(ref.Number)
	}
	a.settled.Store(&settled{Ref: ref, totalDifficulty: header.TotalDifficulty})
	return nil
}

// CacheState changes how many bytes of memory the caches of the state take: half for the
// newest versions of accounts and slots, half for trie nodes. With 0 there are none. It must
// be called before the archive is used.
func (a *Archive) CacheState(bytes int64) {
	switch {
	case a.newest == nil:
	case bytes == 0:
		a.rows, a.History.store, a.newest = a.newest.Reader, a.newest.Reader, nil
	default:
		a.newest.Resize(bytes / 2)
	}
	a.nodes = newNodeCache(bytes / 2)
}

func (a *Archive) loadExtent(ctx context.Context) error {
	extent, err := readExtent(ctx, a.store)
	if err == nil {
		a.extent.Store(&extent)
	}
	return err
}

// Refresh reads the settled block and where the history begins again, of a store to which
// another process writes.
func (a *Archive) Refresh(ctx context.Context) (chain.Ref, error) {
	if err := a.loadExtent(ctx); err != nil {
		return chain.Ref{}, err
	}
	ref, ok, err := rows.Settled(ctx, a.store)
	if err != nil {
		return ref, err
	}
	if now := a.settled.Load(); !ok || now != nil && now.Ref == ref {
		return ref, nil
	}
	if err := a.loadSettled(ctx); err != nil {
		return ref, err
	}
	ref, _ = a.Settled()
	return ref, nil
}

// Genesis returns the chain's genesis without its accounts. The caller must not modify it.
func (a *Archive) Genesis() *core.Genesis { return a.genesis }

// Settled returns the last settled block, or false if there is none yet.
func (a *Archive) Settled() (chain.Ref, bool) {
	if s := a.settled.Load(); s != nil {
		return s.Ref, true
	}
	return chain.Ref{}, false
}
