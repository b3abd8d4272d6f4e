package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/kv"
)

// Extent says where the history of an archive begins. Block 0, the genesis, is always
// stored; the zero Extent is that of an archive that begins with it.
type Extent struct {
	Blocks uint64 // first block of those that are stored without a gap up to the settled one
	State  uint64 // first block with state, at or after Blocks
}

// Pruned means that a block, or the state after a block, is older than the first one that
// is stored.
type Pruned struct {
	Number uint64 // the block that was asked for
	State  bool   // its state was
	First  uint64 // first block that is stored, or first one with state
}

func (e *Pruned) Error() string {
	if e.State {
		return fmt.Sprintf("the state of block %d is not stored (the first block with state is %d)", e.Number, e.First)
	}
	return fmt.Sprintf("block %d is not stored (the first block is %d)", e.Number, e.First)
}

// Extent returns where the history begins.
func (h *History) Extent() Extent { return *h.extent.Load() }

// CheckBlock returns a [*Pruned] if a block is older than the first one that is stored.
func (h *History) CheckBlock(number uint64) error {
	if first := h.extent.Load().Blocks; number < first && number > 0 {
		return &Pruned{Number: number, First: first}
	}
	return nil
}

// CheckRange is [History.CheckBlock] for all blocks of a range.
func (h *History) CheckRange(from, to uint64) error {
	if from == 0 && to > 0 {
		from = 1
	}
	return h.CheckBlock(from)
}

// CheckState returns a [*Pruned] if the state after a block is older than the first one
// that is stored.
func (h *History) CheckState(number uint64) error {
	if first := h.extent.Load().State; number < first {
		return &Pruned{Number: number, State: true, First: first}
	}
	return nil
}

// CheckTraces returns a [*Pruned] if a block cannot be traced, because the state before it is
// older than the first one that is stored. The trace index begins after that block.
func (h *History) CheckTraces(number uint64) error {
	if first := h.extent.Load().State; number <= first && first > 0 {
		return &Pruned{Number: max(number, 1) - 1, State: true, First: first}
	}
	return nil
}

// orPruned translates the absence of a block's row to [*Pruned] if the block is older than
// the first one.
func (h *History) orPruned(number uint64, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if pruned := h.CheckBlock(number); pruned != nil {
		return pruned
	}
	return err
}

// setExtent sets where the history begins. It must be in the same batch as the first rows.
func setExtent(batch kv.Batch, e Extent) {
	value := binary.BigEndian.AppendUint64(nil, e.Blocks)
	batch.SetPointer(pointerFirst, binary.BigEndian.AppendUint64(value, e.State))
}

// readExtent returns where the history in a store begins.
func readExtent(ctx context.Context, store kv.Reader) (e Extent, err error) {
	value, err := store.Pointer(ctx, pointerFirst)
	if errors.Is(err, kv.ErrNotFound) {
		return Extent{}, nil
	}
	if err != nil {
		return e, fmt.Errorf("archive: first: %w", err)
	}
	if len(value) != 16 {
		return e, fmt.Errorf("%w: the first pointer has %d bytes (want 16)", ErrCorrupt, len(value))
	}
	e = Extent{Blocks: binary.BigEndian.Uint64(value), State: binary.BigEndian.Uint64(value[8:])}
	if e.Blocks > e.State {
		return e, fmt.Errorf("%w: the first block is %d, the first one with state %d", ErrCorrupt, e.Blocks, e.State)
	}
	return e, nil
}
