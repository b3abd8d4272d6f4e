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
	Tries  uint64 // first block whose state has its trie nodes, at or after State
}

// valid reports whether there is a block for each state, and a state for all trie nodes.
func (e Extent) valid() bool { return e.Blocks <= e.State && e.State <= e.Tries }

func (e Extent) String() string {
	return fmt.Sprintf("block %d, the state of block %d and the trie nodes of block %d", e.Blocks, e.State, e.Tries)
}

// Earliest returns the earlier one of each of two.
func (e Extent) Earliest(f Extent) Extent {
	return Extent{Blocks: min(e.Blocks, f.Blocks), State: min(e.State, f.State), Tries: min(e.Tries, f.Tries)}
}

// Kind is what of a block is stored.
type Kind int

const (
	OfBlock Kind = iota // the block itself, with its receipts and logs
	OfState             // the state after it
	OfTries             // the trie nodes of that state, of which proofs and state roots are made
)

// first returns the first block of which something is stored.
func (e Extent) first(k Kind) uint64 {
	switch k {
	case OfState:
		return e.State
	case OfTries:
		return e.Tries
	}
	return e.Blocks
}

// checkTries is [History.CheckTries].
func (e Extent) checkTries(number uint64) error {
	switch {
	case number >= e.Tries:
		return nil
	case number < e.State:
		return &Pruned{Kind: OfState, Number: number, First: e.State}
	}
	return &Pruned{Kind: OfTries, Number: number, First: e.Tries}
}

// Pruned means that a block, the state after it, or that state's trie nodes are older than the first that
// are stored.
type Pruned struct {
	Kind   Kind   // what was asked for
	Number uint64 // of which block
	First  uint64 // the first block of which that is stored
}

// Error says what is missing in words for which proxies before several nodes look, such as geth's.
func (e *Pruned) Error() string {
	switch e.Kind {
	case OfState:
		return fmt.Sprintf("historical state is not available at block %d (the first block with state is %d)", e.Number, e.First)
	case OfTries:
		return fmt.Sprintf("missing trie nodes of block %d, of which proofs and state roots are made (the first block with trie nodes is %d)", e.Number, e.First)
	}
	return fmt.Sprintf("block %d is not available (the first block is %d)", e.Number, e.First)
}

// Extent returns where the history begins.
func (h *History) Extent() Extent { return *h.extent.Load() }

// Executed reports whether a block that is stored was executed: it is not older than the state with
// which the archive began. A window may have removed its state since.
func (h *History) Executed(number uint64) bool { return number >= min(h.began, h.Extent().State) }

// CheckBlock returns a [*Pruned] if a block is older than the first one that is stored, and is
// not read from a [Source] either.
func (h *History) CheckBlock(number uint64) error {
	if h.sourced != nil {
		return nil
	}
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
		return &Pruned{Kind: OfState, Number: number, First: first}
	}
	return nil
}

// CheckTries returns a [*Pruned] if the trie nodes of the state after a block, or the whole state, are
// older than the first that are stored.
func (h *History) CheckTries(number uint64) error {
	return h.extent.Load().checkTries(number)
}

// CheckTraces returns a [*Pruned] if a block cannot be traced, because the state before it is
// older than the first one that is stored. The trace index begins after that block.
func (h *History) CheckTraces(number uint64) error {
	if first := h.extent.Load().State; number <= first && first > 0 {
		return &Pruned{Kind: OfState, Number: max(number, 1) - 1, First: first}
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
	batch.SetPointer(pointerFirst, encodeExtent(e))
}

// readExtent returns where the history in a store begins.
func readExtent(ctx context.Context, store kv.Reader) (e Extent, err error) {
	e, _, err = readExtentOf(ctx, store, pointerFirst)
	return e, err
}

// readExtentOf decodes a pointer, or returns false if it does not exist.
func readExtentOf(ctx context.Context, store kv.Reader, pointer string) (e Extent, there bool, err error) {
	value, err := store.Pointer(ctx, pointer)
	if errors.Is(err, kv.ErrNotFound) {
		return Extent{}, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("archive: %s: %w", pointer, err)
	}
	if len(value) != 16 && len(value) != 24 {
		return e, false, fmt.Errorf("%w: the %s pointer has %d bytes (want 16 or 24)", ErrCorrupt, pointer, len(value))
	}
	e = Extent{Blocks: binary.BigEndian.Uint64(value), State: binary.BigEndian.Uint64(value[8:])}
	e.Tries = e.State
	if len(value) == 24 {
		e.Tries = binary.BigEndian.Uint64(value[16:])
	}
	if !e.valid() {
		return e, false, fmt.Errorf("%w: the %s pointer says that the history begins with %s", ErrCorrupt, pointer, e)
	}
	return e, true, nil
}

// encodeExtent returns the value of a pointer, which [readExtentOf] decodes. It has the first block
// with trie nodes only if there are older states without them.
func encodeExtent(e Extent) []byte {
	value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, e.Blocks), e.State)
	if e.Tries == e.State {
		return value
	}
	return binary.BigEndian.AppendUint64(value, e.Tries)
}

// SetFirst durably moves where the history begins to later blocks. From then on nothing older
// is read, so it can be removed; until [Archive.SetRemoved] some of it may be there.
func (a *Archive) SetFirst(ctx context.Context, e Extent) error {
	now := a.Extent()
	settled, _ := a.Settled()
	if e.Earliest(now) != now || !e.valid() || e.Tries > settled.Number {
		return fmt.Errorf("archive: begin with %s: it begins with %s, and ends with block %d", e, now, settled.Number)
	}
	removed, there, err := a.Removed(ctx)
	if err != nil {
		return err
	}
	if !there {
		removed = now
	}
	batch := a.store.NewBatch()
	setExtent(batch, e)
	batch.SetPointer(pointerRemoved, encodeExtent(removed.Earliest(now)))
	if err := a.writeDurably(ctx, batch); err != nil {
		return err
	}
	a.extent.Store(&e)
	return nil
}

// Removed returns the history before which everything is removed, or false if nothing ever
// was. It is older than the first one while rows are being removed.
func (a *Archive) Removed(ctx context.Context) (Extent, bool, error) {
	return readExtentOf(ctx, a.store, pointerRemoved)
}

// SetRemoved durably records that everything older than e is removed. Then nothing is left either of blocks that an [Older] has
// added, unless it was interrupted below the blocks from which rows were removed.
func (a *Archive) SetRemoved(ctx context.Context, e Extent) error {
	from, _, err := a.Removed(ctx)
	if err != nil {
		return err
	}
	lowest, added, err := readOlder(ctx, a.store)
	if err != nil {
		return err
	}
	batch := a.store.NewBatch()
	batch.SetPointer(pointerRemoved, encodeExtent(e))
	if added && lowest >= from.Blocks && lowest < e.Blocks {
		SetOlder(batch, e.Blocks)
	}
	return a.writeDurably(ctx, batch)
}

// writeDurably writes a batch after everything that was written before is durable.
func (a *Archive) writeDurably(ctx context.Context, batch kv.Batch) error {
	err := a.store.Sync(ctx)
	if err == nil {
		err = a.store.Write(ctx, batch)
	}
	if err == nil {
		err = a.store.Sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("archive: move the first block: %w", err)
	}
	return nil
}
