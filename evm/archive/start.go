package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/genesis"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// Beginning is the state with which an archive begins.
type Beginning struct {
	chain.Ref // the block
	// Source names where the state comes from: sources of one name have the same accounts, slots
	// and codes, right or wrong.
	Source common.Hash
}

// startBatchBytes is the size of a batch of a [Start].
const startBatchBytes = 4 << 20

// Start makes an archive that begins with the state of a block instead of the genesis. The
// whole state is written as versions of that block: every account, slot and trie node.
//
// A start is complete or not used at all: the store has no settled block before
// [Start.Finish], so nothing opens it. A start that was interrupted continues after the
// last account for which [Start.Done] was called; the rows after it are written again. Only
// all accounts of a source together prove that they are the state, so no other source continues.
//
// It belongs to one goroutine.
type Start struct {
	// BatchBytes is about how much is written at once. Tests change it.
	BatchBytes int

	store  kv.Store
	batch  kv.Batch
	form   form
	at     chain.Ref
	source common.Hash
	done   common.Hash              // last account that is complete; zero: none
	codes  map[common.Hash]struct{} // in the batch
	value  []byte                   // scratch
	key    []byte                   // scratch
}

// Begin begins an archive with a state, in a store without blocks, or continues. An interrupted
// start from another block or another source is refused.
func Begin(ctx context.Context, store kv.Store, genesis *core.Genesis, at Beginning, features ...Feature) (*Start, error) {
	if err := AcceptStart(ctx, store, genesis, &at); err != nil {
		return nil, err
	}
	s := &Start{BatchBytes: startBatchBytes, store: store, batch: store.NewBatch(), at: at.Ref, source: at.Source, codes: make(map[common.Hash]struct{})}
	before, done, under, err := readStart(ctx, store)
	if err != nil {
		return nil, err
	}
	if under && before == at.Ref {
		s.done = done
		s.form, err = formOf(ctx, store)
		return s, err
	}
	s.form = newForm(features)
	if err := writeGenesis(ctx, store, genesis, s.form); err != nil {
		return nil, err
	}
	return s, s.flush(ctx, 0)
}

// AcceptStart checks whether a store can begin with a state, without changing it. at may be nil
// if the state is not known yet.
func AcceptStart(ctx context.Context, store kv.Reader, genesis *core.Genesis, at *Beginning) error {
	err := checkComplete(ctx, store)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if settled, ok, err := rows.Settled(ctx, store); err != nil {
		return err
	} else if ok {
		return fmt.Errorf("archive: it has blocks up to %s already (want a new network to begin with a state)", settled)
	}
	before, done, under, err := readStart(ctx, store)
	if err != nil || !under {
		return err
	}
	if before.Hash == (common.Hash{}) {
		return errDamagedStart
	}
	if at != nil && before != at.Ref {
		return fmt.Errorf("%w: it is that of block %s, not of %s (continue with that state, or remove the network)", ErrStarting, before, at.Ref)
	}
	if at != nil {
		if err := checkStartSource(ctx, store, at.Source, done); err != nil {
			return err
		}
	}
	return checkStartGenesis(ctx, store, genesis)
}

// checkStartGenesis returns ErrOtherChain if the state was begun with another genesis. The forks of a public network
// may differ: an earlier version may have begun it, and this one goes by those that it knows.
func checkStartGenesis(ctx context.Context, store kv.Reader, wanted *core.Genesis) error {
	pointer, err := store.Pointer(ctx, pointerGenesis)
	if err != nil {
		return fmt.Errorf("archive: genesis: %w", err)
	}
	begun, err := decodeGenesis(pointer)
	if err != nil {
		return err
	}
	if _, public := genesis.Schedule(wanted.ToBlock().Hash()); public {
		begun.Config = wanted.Config
	}
	a, err := encodeGenesis(begun)
	if err != nil {
		return err
	}
	b, err := encodeGenesis(wanted)
	if err == nil && !bytes.Equal(a, b) {
		err = fmt.Errorf("%w: its first state was begun with another genesis", ErrOtherChain)
	}
	return err
}

// checkStartSource returns ErrStarting if rows of the state were written from another source. done is
// the last account that is complete.
func checkStartSource(ctx context.Context, store kv.Reader, source, done common.Hash) error {
	stored, err := store.Pointer(ctx, pointerStartSource)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		if done == (common.Hash{}) {
			return nil // nothing was written yet
		}
		return fmt.Errorf("%w: an earlier version has begun it, and did not note from which source (remove the network, and begin again)", ErrStarting)
	case err != nil:
		return fmt.Errorf("archive: %s: %w", pointerStartSource, err)
	case bytes.Equal(stored, source[:]):
		return nil
	}
	return fmt.Errorf("%w: a part of it came from another source, and only all of that would prove it (continue from the same source, or a copy with the same files, or remove the network)", ErrStarting)
}

// errDamagedStart means that nothing can continue with the state in a store.
var errDamagedStart = fmt.Errorf("%w: it came from a damaged source (remove the network, and begin again from another source)", ErrStarting)

// checkStarted returns ErrStarting if a store has a start that was not finished.
func checkStarted(ctx context.Context, store kv.Reader) error {
	if _, ok, err := rows.Settled(ctx, store); ok || err != nil {
		return err
	}
	at, _, under, err := readStart(ctx, store)
	switch {
	case err != nil || !under:
		return err
	case at.Hash == (common.Hash{}):
		return errDamagedStart
	}
	return fmt.Errorf("%w: to complete it, run the same `ashlar snapshot load` or `ashlar import --state` again, with the state of block %s", ErrStarting, at)
}

// readStart decodes the start pointer: the block and the last complete account.
func readStart(ctx context.Context, store kv.Reader) (at chain.Ref, done common.Hash, under bool, err error) {
	value, err := store.Pointer(ctx, pointerStart)
	if errors.Is(err, kv.ErrNotFound) {
		return at, done, false, nil
	}
	if err == nil && len(value) != 8+2*common.HashLength {
		err = fmt.Errorf("%w: the start pointer has %d bytes", ErrCorrupt, len(value))
	}
	if err != nil {
		return at, done, false, err
	}
	at = chain.Ref{Number: binary.BigEndian.Uint64(value), Hash: common.Hash(value[8:])}
	return at, common.Hash(value[8+common.HashLength:]), true, nil
}

// encodeStart is the reverse of readStart.
func encodeStart(at chain.Ref, done common.Hash) []byte {
	value := append(binary.BigEndian.AppendUint64(nil, at.Number), at.Hash[:]...)
	return append(value, done[:]...)
}

// LastDone returns the last account that is complete, zero if none is. Accounts are
// written in ascending order.
func (s *Start) LastDone() common.Hash { return s.done }

// PutAccount writes an account.
func (s *Start) PutAccount(address common.Hash, account *types.StateAccount) {
	s.value = AppendAccount(s.value[:0], account)
	s.batch.Put(accounts, address[:], s.at.Number, s.value)
}

// PutSlot writes a slot of an account. value is its word without leading zeros.
func (s *Start) PutSlot(address, slot common.Hash, value []byte) {
	s.key = appendSlotKey(s.key[:0], address, slot)
	s.batch.Put(slots, s.key, s.at.Number, value)
}

// PutCode writes a contract code.
func (s *Start) PutCode(hash common.Hash, code []byte) {
	s.batch.Put(codes, hash[:], 0, code)
	s.codes[hash] = struct{}{}
}

// HasCode reports whether a code was put.
func (s *Start) HasCode(ctx context.Context, hash common.Hash) (bool, error) {
	if _, ok := s.codes[hash]; ok {
		return true, nil
	}
	_, err := s.store.Get(ctx, codes, hash[:], 0, nil)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// PutNode writes a trie node.
func (s *Start) PutNode(owner common.Hash, path, blob []byte) error {
	s.key = appendNodeKey(s.key[:0], owner, string(path))
	value, _, err := appendNode(s.value[:0], s.key, s.at.Number, evm.Node{Blob: blob}, wholeSteps{})
	if err != nil {
		return err
	}
	s.value = value
	s.batch.Put(trieNodes, s.key, s.at.Number, s.value)
	return nil
}

// wholeSteps is for nodes without earlier versions: they are stored whole.
type wholeSteps struct{}

func (wholeSteps) steps([]byte, uint64) (int, error) { return maxSteps, nil }
func (wholeSteps) wrote([]byte, uint64, int)         {}

// Done records that an account is complete: its slots, its trie and its code.
func (s *Start) Done(ctx context.Context, address common.Hash) error {
	s.done = address
	return s.Flush(ctx)
}

// Flush writes what was put if there is enough of it. It must be called now and then.
func (s *Start) Flush(ctx context.Context) error { return s.flush(ctx, s.BatchBytes) }

func (s *Start) flush(ctx context.Context, least int) error {
	if s.batch.Bytes() < least {
		return nil
	}
	if s.batch.Rows() > 0 || s.done != (common.Hash{}) {
		s.batch.SetPointer(pointerStartSource, s.source[:])
	}
	s.batch.SetPointer(pointerStart, encodeStart(s.at, s.done))
	if err := s.store.Write(ctx, s.batch); err != nil {
		return fmt.Errorf("archive: write the state of block %s: %w", s.at, err)
	}
	s.batch.Reset()
	clear(s.codes)
	return nil
}

// Fail records that what was written is not the state of the block, so that nothing
// continues with it.
func (s *Start) Fail(ctx context.Context) error {
	s.batch.Reset()
	clear(s.codes)
	s.at.Hash = common.Hash{}
	if err := s.flush(ctx, 0); err != nil {
		return err
	}
	return s.store.Sync(ctx)
}

// PutBlock writes the rows of a block: the genesis, or one of those up to the first with
// state. totalDifficulty is that of the chain including the block.
func (s *Start) PutBlock(delta *evm.Delta, totalDifficulty *big.Int) error {
	return encodeBlock(s.batch, delta, totalDifficulty, s.form)
}

// Finish completes the start, of which everything is written but the first block with
// state, and opens the archive. The blocks from first on must have been put, and the
// genesis.
func (s *Start) Finish(ctx context.Context, first uint64, delta *evm.Delta, totalDifficulty *big.Int) (*Archive, error) {
	if delta.Ref() != s.at {
		return nil, fmt.Errorf("archive: the start is at block %s, not %s", s.at, delta.Ref())
	}
	if err := s.PutBlock(delta, totalDifficulty); err != nil {
		return nil, err
	}
	if err := s.flush(ctx, 0); err != nil {
		return nil, err
	}
	if err := s.store.Sync(ctx); err != nil {
		return nil, err
	}
	setExtent(s.batch, Extent{Blocks: first, State: s.at.Number, Tries: s.at.Number})
	rows.SetSettled(s.batch, s.at)
	if err := s.flush(ctx, 0); err != nil {
		return nil, err
	}
	if err := s.store.Sync(ctx); err != nil {
		return nil, err
	}
	return Open(ctx, s.store)
}

// FirstState returns the first block with state of a complete archive that did not begin
// with the genesis, or false.
func FirstState(ctx context.Context, store kv.Reader) (chain.Ref, bool, error) {
	if _, ok, err := rows.Settled(ctx, store); !ok || err != nil {
		return chain.Ref{}, false, err
	}
	extent, err := readExtent(ctx, store)
	if err != nil || extent.State == 0 {
		return chain.Ref{}, false, err
	}
	history := newHistory(store, form{})
	header, err := history.Header(ctx, extent.State)
	if err != nil {
		return chain.Ref{}, false, err
	}
	return chain.Ref{Number: extent.State, Hash: header.Hash}, true, nil
}
