// Package tip holds the blocks above the settled one. They form a small tree in memory and
// are also in the store, so after a restart or crash the same tree is loaded and no block
// is executed again.
//
// A block is added as the [Rows] that it will have in the archive; the tip knows neither
// their meaning nor the chain family. The blocks from the settled one up to a block form a
// [Branch]. [Branch.Over] overlays its rows on those of the store, so every query that the
// archive supports works for a branch. Forks exist only in the tip: a reorganization moves
// the head from one branch to another and changes nothing else.
//
// To settle blocks, the owner of the archive writes the rows of [Tip.Unsettled] to it and
// then calls [Tip.Settled]. The tip then discards these blocks, and all branches that do
// not contain the settled block. A crash in between does no harm: [Open] takes the settled
// block from the archive and discards the rest.
//
// Methods that change a tip are serialized and wait for the disk. Readers never wait: a
// branch is immutable, and remains readable for as long as it is referenced.
package tip

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

var (
	// ErrUnknownParent means that the parent of a block is neither the settled block nor in the tip.
	ErrUnknownParent = errors.New("tip: unknown parent")
	// ErrUnknownBlock means that a block is neither the settled one nor in the tip.
	ErrUnknownBlock = errors.New("tip: unknown block")
	// ErrCorrupt means that a stored row is not what was written.
	ErrCorrupt = errors.New("tip: corrupt")
)

// Tip is the tree of one network's unsettled blocks.
type Tip struct {
	store  kv.Store
	tables *tables

	write    sync.Mutex // held while the tip changes
	sequence uint64     // guarded by write; the last one that was saved, or may have been
	tree     atomic.Pointer[tree]
	moved    atomic.Pointer[chan struct{}]
}

// Open loads the tip from a store, on top of the archive's settled block. tables lists all
// tables to which blocks add rows.
func Open(ctx context.Context, store kv.Store, tables []*kv.Table, settled chain.Ref) (*Tip, error) {
	t := &Tip{store: store, tables: newTables(tables)}
	loaded, err := t.load(ctx, settled)
	if err != nil {
		return nil, err
	}
	t.tree.Store(loaded)
	moved := make(chan struct{})
	t.moved.Store(&moved)
	return t, nil
}

// Forkchoice is a snapshot of the head and of the safe and finalized blocks.
type Forkchoice struct {
	Head            *Branch
	Safe, Finalized chain.Ref // zero while unknown
}

// Forkchoice returns the current head, safe and finalized blocks.
func (t *Tip) Forkchoice() Forkchoice {
	now := t.tree.Load()
	return Forkchoice{Head: now.head, Safe: now.safe, Finalized: now.finalized}
}

// Moved returns a channel that is closed at the next change of the head, safe or finalized
// block. Settling alone does not close it.
func (t *Tip) Moved() <-chan struct{} { return *t.moved.Load() }

// EachMove calls act once and then after every change that [Tip.Moved] signals, until act
// fails or ctx is done. Several changes during one call of act lead to one further call.
// The end of ctx is not an error, even if act returns it.
func (t *Tip) EachMove(ctx context.Context, act func(context.Context) error) error {
	return EachMoveOf(ctx, act, t, t)
}

// EachMoveOf is [Tip.EachMove] for the changes of two tips.
func EachMoveOf(ctx context.Context, act func(context.Context) error, a, b *Tip) error {
	for {
		movedA, movedB := a.Moved(), b.Moved()
		if err := act(ctx); err != nil {
			if canceled := ctx.Err(); canceled != nil && errors.Is(err, canceled) {
				return nil
			}
			return err
		}
		select {
		case <-movedA:
		case <-movedB:
		case <-ctx.Done():
			return nil
		}
	}
}

// Has reports whether a block is the settled one or in the tip.
func (t *Tip) Has(hash common.Hash) bool {
	now := t.tree.Load()
	return hash == now.settled.Hash || now.blocks[hash] != nil
}

// Branch returns the branch that ends with a block, or ErrUnknownBlock.
func (t *Tip) Branch(hash common.Hash) (*Branch, error) {
	now := t.tree.Load()
	if now.head.Ref().Hash == hash {
		return now.head, nil
	}
	return now.branch(hash)
}

// Extend returns a branch with one more block, such as a pending one, without adding that
// block to the tip. The caller must not use rows afterwards.
func (t *Tip) Extend(branch *Branch, ref chain.Ref, rows *Rows) (*Branch, error) {
	last := branch.Ref()
	if ref.Number != last.Number+1 {
		return nil, fmt.Errorf("tip: block %s cannot follow block %s", ref, last)
	}
	block, err := newBlock(ref, last.Hash, rows.encoded, t.tables)
	if err != nil {
		return nil, err
	}
	return newBranch(branch.settled, append(branch.blocks[:len(branch.blocks):len(branch.blocks)], block)), nil
}

// Add adds a block to the tip without moving the head. When it returns, the block is durable
// and visible to Branch. If the parent is missing it returns ErrUnknownParent. Adding a
// block again has no effect. The caller must not use rows afterwards.
func (t *Tip) Add(ctx context.Context, ref chain.Ref, parent common.Hash, rows *Rows) error {
	t.write.Lock()
	defer t.write.Unlock()
	now := t.tree.Load()
	if ref.Hash == now.settled.Hash || now.blocks[ref.Hash] != nil {
		return nil
	}
	below := now.settled
	if parent != now.settled.Hash {
		known := now.blocks[parent]
		if known == nil {
			return fmt.Errorf("%w: parent %x of block %s", ErrUnknownParent, parent, ref)
		}
		below = known.ref
	}
	if ref.Number != below.Number+1 {
		return fmt.Errorf("tip: block %s cannot follow block %s", ref, below)
	}
	block, err := newBlock(ref, parent, rows.encoded, t.tables)
	if err != nil {
		return err
	}
	next := now.copy()
	next.add(block)
	batch := t.store.NewBatch()
	block.put(batch)
	return t.publish(ctx, batch, next)
}

// Len returns the number of unsettled blocks, on all branches.
func (t *Tip) Len() int { return len(t.tree.Load().blocks) }

// Store returns the store that has the blocks.
func (t *Tip) Store() kv.Store { return t.store }

// Prune removes blocks while there are most or more, so that a source of many branches
// cannot make the tip grow without bound. It removes the oldest blocks and their
// descendants first. The branches that end with the head and with a block of keep are never
// removed, however long they are.
func (t *Tip) Prune(ctx context.Context, most int, keep ...common.Hash) error {
	t.write.Lock()
	defer t.write.Unlock()
	now := t.tree.Load()
	if len(now.blocks) < most {
		return nil
	}
	next := now.copy()
	gone := next.prune(most, keep)
	if len(gone) == 0 {
		return nil
	}
	return t.discard(ctx, next, gone)
}

// SetHead sets the head and the safe and finalized blocks; a zero Ref leaves either
// unchanged. If head is neither the settled block nor in the tip, SetHead returns
// ErrUnknownBlock and changes nothing. When it returns, the change is durable.
func (t *Tip) SetHead(ctx context.Context, head common.Hash, safe, finalized chain.Ref) error {
	t.write.Lock()
	defer t.write.Unlock()
	now := t.tree.Load()
	next := *now
	if now.head.Ref().Hash != head {
		branch, err := now.branch(head)
		if err != nil {
			return err
		}
		next.head = branch
	}
	if safe != (chain.Ref{}) {
		next.safe = safe
	}
	if finalized != (chain.Ref{}) {
		next.finalized = finalized
	}
	if next.head == now.head && next.safe == now.safe && next.finalized == now.finalized {
		return nil
	}
	return t.publish(ctx, t.store.NewBatch(), &next)
}

// Unsettled returns the blocks of the head's branch up to number, in ascending order.
func (t *Tip) Unsettled(number uint64) []*Block {
	return t.tree.Load().head.upTo(number)
}

// Settled records that the archive has the blocks of the head's branch up to ref. It
// discards these blocks, and the branches that fork off below ref.
func (t *Tip) Settled(ctx context.Context, ref chain.Ref) error {
	t.write.Lock()
	defer t.write.Unlock()
	now := t.tree.Load()
	if ref == now.settled {
		return nil
	}
	if at, ok := now.head.At(ref.Number); !ok || at != ref {
		return fmt.Errorf("%w: settled block %s is not on the head's branch, which ends with %s", ErrUnknownBlock, ref, now.head.Ref())
	}
	next := now.copy()
	gone := next.settle(ref)
	var err error
	if next.head, err = next.branch(now.head.Ref().Hash); err != nil {
		return err
	}
	return t.discard(ctx, next, gone)
}

// discard publishes a tree and removes the blocks that it no longer has from the store.
func (t *Tip) discard(ctx context.Context, next *tree, gone []common.Hash) error {
	if err := t.publish(ctx, t.store.NewBatch(), next); err != nil {
		return err
	}
	for _, hash := range gone {
		if err := t.store.Drop(ctx, unsettled, hash[:]); err != nil {
			return err
		}
	}
	return nil
}

// Overtaken records that the archive has blocks up to ref that did not pass through the
// tip. It discards all blocks that do not descend from ref. If the head is discarded, and
// ref is not on its branch, ref becomes the head.
func (t *Tip) Overtaken(ctx context.Context, ref chain.Ref) error {
	t.write.Lock()
	defer t.write.Unlock()
	now := t.tree.Load()
	if ref.Number < now.settled.Number {
		return fmt.Errorf("tip: block %s cannot overtake the settled block %s", ref, now.settled)
	}
	head := now.head.Ref().Hash
	next := now.copy()
	gone := next.settle(ref)
	if next.blocks[head] == nil {
		head = ref.Hash
	}
	var err error
	if next.head, err = next.branch(head); err != nil {
		return err
	}
	return t.discard(ctx, next, gone)
}

// publish saves a batch and the pointer to a tree durably, then makes the tree visible to
// readers.
func (t *Tip) publish(ctx context.Context, batch kv.Batch, next *tree) error {
	if err := t.save(ctx, batch, next); err != nil {
		return err
	}
	t.show(next)
	return nil
}

// show makes a tree visible to readers.
func (t *Tip) show(next *tree) {
	if before := t.tree.Swap(next); !before.sameForkchoice(next) {
		moved := make(chan struct{})
		close(*t.moved.Swap(&moved))
	}
}

// save writes a batch and the pointer to a tree durably.
func (t *Tip) save(ctx context.Context, batch kv.Batch, next *tree) error {
	// A write that failed may have been applied all the same, so its number is not used again.
	if now := t.tree.Load(); now == nil || now.sequence != t.sequence || !now.sameForkchoice(next) {
		t.sequence++
	}
	next.sequence = t.sequence
	batch.SetPointer(pointerTip, next.encode())
	if err := t.store.Write(ctx, batch); err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	if err := t.store.Sync(ctx); err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	return nil
}
