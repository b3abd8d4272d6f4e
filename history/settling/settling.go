// Package settling makes interrupted writes of settled blocks harmless, in stores that do not
// apply a batch at once.
//
// There a crash can leave rows of blocks that the settled pointer does not reach. Nobody
// reads them, and when the same blocks are written again they are the same rows. But if
// another block is written in the place of one of them, a row of the lost block would pass
// for one of its successor: as the newest version of an account, say. So
//
//	settling = hashes   durable before the first row is written
//	...                 rows
//	settled  = block
//
// and what is to be written in the place of a block that settling names, with another hash,
// waits until the rows of that block are removed. Until then, [Prune] keeps that block in the
// tip.
package settling

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// pointer names the blocks whose rows are, or were, being written.
const pointer = "settling"

// ErrLeft means that rows of a lost block cannot be found to be removed.
var ErrLeft = errors.New("rows of another block remain from an interrupted write")

// blocks are consecutive blocks.
type blocks struct {
	first  uint64
	hashes []common.Hash
}

func (b *blocks) end() uint64 { return b.first + uint64(len(b.hashes)) }

// at returns the hash of a block, false if it is not one of the blocks.
func (b *blocks) at(number uint64) (common.Hash, bool) {
	if number < b.first || number >= b.end() {
		return common.Hash{}, false
	}
	return b.hashes[number-b.first], true
}

// Begin is called before the rows of consecutive blocks are written to a store. tables are
// those that have rows of blocks.
func Begin(ctx context.Context, store kv.Store, tables []*kv.Table, writing []chain.Ref) error {
	if _, ok := store.(kv.Piecewise); !ok || len(writing) == 0 {
		return nil
	}
	left, err := read(ctx, store)
	if err != nil {
		return err
	}
	next := blocks{first: writing[0].Number}
	same := 0
	for _, ref := range writing {
		next.hashes = append(next.hashes, ref.Hash)
		hash, ok := left.at(ref.Number)
		switch {
		case ok && hash == ref.Hash:
			same++
		case ok:
			if err := remove(ctx, store, tables, &left, ref); err != nil {
				return err
			}
		}
	}
	if same == len(writing) {
		return nil
	}
	if after := next.end(); after >= left.first && after < left.end() {
		next.hashes = append(next.hashes, left.hashes[after-left.first:]...)
	}
	return write(ctx, store, &next)
}

// Prune is [tip.Tip.Prune], but keeps blocks whose rows an interrupted write may have left:
// only from the tip is it known which rows those are.
func Prune(ctx context.Context, unsettled *tip.Tip, most int, keep common.Hash) error {
	if unsettled.Len() < most {
		return nil
	}
	kept := []common.Hash{keep}
	if _, ok := unsettled.Store().(kv.Piecewise); ok {
		left, err := read(ctx, unsettled.Store())
		if err != nil {
			return err
		}
		kept = append(kept, left.hashes...)
	}
	return unsettled.Prune(ctx, most, kept...)
}

// Forget records that no rows of later blocks than the settled one remain.
func Forget(b kv.Batch) { b.SetPointer(pointer, nil) }

func read(ctx context.Context, store kv.Reader) (left blocks, err error) {
	value, err := store.Pointer(ctx, pointer)
	switch {
	case errors.Is(err, kv.ErrNotFound) || err == nil && len(value) == 0:
		return left, nil
	case err != nil:
		return left, fmt.Errorf("settling: %w", err)
	case len(value)%common.HashLength != 8:
		return left, fmt.Errorf("settling: the pointer has %d bytes (want 8, and 32 for each block)", len(value))
	}
	left.first = binary.BigEndian.Uint64(value)
	for rest := value[8:]; len(rest) > 0; rest = rest[common.HashLength:] {
		left.hashes = append(left.hashes, common.Hash(rest[:common.HashLength]))
	}
	return left, nil
}

func write(ctx context.Context, store kv.Store, b *blocks) error {
	value := binary.BigEndian.AppendUint64(nil, b.first)
	for _, hash := range b.hashes {
		value = append(value, hash[:]...)
	}
	batch := store.NewBatch()
	batch.SetPointer(pointer, value)
	err := store.Write(ctx, batch)
	if err == nil {
		err = store.Sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("settling: %w", err)
	}
	return nil
}

// remove removes the rows of the left block in whose place ref is to be written, and of
// those above it, which descend from it. The blocks are still among the unsettled ones.
func remove(ctx context.Context, store kv.Store, tables []*kv.Table, left *blocks, ref chain.Ref) error {
	batch := store.NewBatch()
	for number := left.end() - 1; number >= ref.Number; number-- {
		hash, _ := left.at(number)
		lost := chain.Ref{Number: number, Hash: hash}
		err := tip.EachRow(ctx, store, tables, lost, func(t *kv.Table, r kv.Row) {
			if t.BlockOf(r.Sort) == number { // a code belongs to all blocks
				batch.Delete(t, r.Partition, r.Sort)
			}
		})
		if errors.Is(err, tip.ErrUnknownBlock) {
			return fmt.Errorf("block %s: %w, %s; run `ashlar rewind` with --to %d", ref, ErrLeft, lost, ref.Number-1)
		}
		if err != nil {
			return fmt.Errorf("settling: %w", err)
		}
	}
	if err := store.Write(ctx, batch); err != nil {
		return fmt.Errorf("settling: remove rows of a lost block: %w", err)
	}
	left.hashes = left.hashes[:ref.Number-left.first]
	return nil
}
