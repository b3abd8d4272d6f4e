// Package tip holds the blocks above the settled one: a small tree in memory,
// each block of it in the store too, so that a restart, after a kill as well, comes
// back with the same tree and executes nothing again.
//
// A block comes as the [Rows] that it will have in the archive, so the tip knows
// neither what they mean nor which family of chain they are of. The way from a
// block down to the settled one is a [Branch]; [Branch.Over] lays its rows over
// those of the store, so that whatever the archive answers it answers as of that
// branch. Forks live here only: a reorganization moves the head from one branch to
// another and changes nothing else.
//
// To settle, whoever owns the archive writes the rows of [Tip.Unsettled] to it and
// then calls [Tip.Settled], which lets go of them and of all branches that do not go
// through the settled block. Being killed in between costs nothing: [Open] is told
// what is settled and lets go of the rest.
//
// Methods that change a tip wait for each other and for the disk. Reading never
// waits: a branch does not change, and what it refers to stays while it is held.
package tip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

var (
	// ErrUnknownParent says that the parent of a block is neither the settled block nor in the tip.
	ErrUnknownParent = errors.New("tip: the parent is not known")
	// ErrUnknownBlock says that a block is neither the settled one nor in the tip.
	ErrUnknownBlock = errors.New("tip: the block is not known")
	// ErrCorrupt says that a stored row is not what was written.
	ErrCorrupt = errors.New("tip: corrupt")
)

// Tip is the tree of one network's unsettled blocks.
type Tip struct {
	store  kv.Store
	tables *tables

	write sync.Mutex // held while the tip changes
	tree  atomic.Pointer[tree]
	moved atomic.Pointer[chan struct{}]
}

// tree is what a tip holds at one moment. It is not changed once readers see it.
type tree struct {
	settled         chain.Ref
	blocks          map[common.Hash]*Block
	head            *Branch
	safe, finalized chain.Ref // zero while not told
}

// Open reads the tip that a store holds, on top of the settled block of its
// archive. tables are those whose rows blocks bring.
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

// Standing is which block is what at one moment.
type Standing struct {
	Head            *Branch
	Safe, Finalized chain.Ref // zero while nobody has told them
}

// Standing says which block is what now.
func (t *Tip) Standing() Standing {
	now := t.tree.Load()
	return Standing{Head: now.head, Safe: now.safe, Finalized: now.finalized}
}

// Moved returns a channel that is closed once another block is the head, safe or
// finalized than when Moved was called. Settling alone moves nothing.
func (t *Tip) Moved() <-chan struct{} { return *t.moved.Load() }

// EachMove calls act at once and then after every move, as [Tip.Moved] has it, until
// act fails or ctx is done. Moves that come while act runs are one. That ctx is done is
// no error, also where it is what act returns.
func (t *Tip) EachMove(ctx context.Context, act func(context.Context) error) error {
	for {
		moved := t.Moved()
		if err := act(ctx); err != nil {
			if canceled := ctx.Err(); canceled != nil && errors.Is(err, canceled) {
				return nil
			}
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil
		}
	}
}

// Has says whether a block is the settled one or in the tip.
func (t *Tip) Has(hash common.Hash) bool {
	now := t.tree.Load()
	return hash == now.settled.Hash || now.blocks[hash] != nil
}

// Branch is the branch that ends with a block, or ErrUnknownBlock.
func (t *Tip) Branch(hash common.Hash) (*Branch, error) {
	now := t.tree.Load()
	if now.head.Ref().Hash == hash {
		return now.head, nil
	}
	return now.branch(hash)
}

// Extend is a branch with one more block, which is not in the tip and will not be
// kept: one that is only imagined, as a pending block is. rows must not be used
// afterwards.
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

// Add brings a block into the tip; on return it is durable and there for Branch.
// The head stays where it is. The parent must be there, else ErrUnknownParent. A
// block that is there already is not added again. rows must not be used afterwards.
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
			return fmt.Errorf("%w: block %s has the parent %x", ErrUnknownParent, ref, parent)
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

// MakeRoom lets blocks go while there are most or more, so that whoever supplies blocks
// of many branches cannot make the tip grow for ever: the oldest that are neither on the
// head's branch nor on the one that ends with the block keep, with all that came after
// them. These two branches stay, however long they are.
func (t *Tip) MakeRoom(ctx context.Context, most int, keep common.Hash) error {
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
	return t.letGo(ctx, next, gone)
}

// SetHead makes a block the head and says which blocks are safe and finalized;
// zero leaves either as it is. The head must be the settled block or in the tip,
// else ErrUnknownBlock and nothing is changed. On return it is durable.
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

// Unsettled are the blocks of the head's branch up to a number, in ascending order.
func (t *Tip) Unsettled(number uint64) []*Block {
	return t.tree.Load().head.upTo(number)
}

// Settled takes note that the archive has the blocks of the head's branch up to
// ref. It lets go of them, and of the branches that leave the chain below ref.
func (t *Tip) Settled(ctx context.Context, ref chain.Ref) error {
	t.write.Lock()
	defer t.write.Unlock()
	now := t.tree.Load()
	if ref == now.settled {
		return nil
	}
	if at, ok := now.head.At(ref.Number); !ok || at != ref {
		return fmt.Errorf("%w: block %s is said to be settled, the head's branch up to %s has none such", ErrUnknownBlock, ref, now.head.Ref())
	}
	next := now.copy()
	gone := next.settle(ref)
	var err error
	if next.head, err = next.branch(now.head.Ref().Hash); err != nil {
		return err
	}
	return t.letGo(ctx, next, gone)
}

// letGo shows a tree to readers, and drops the blocks that it no longer has.
func (t *Tip) letGo(ctx context.Context, next *tree, gone []common.Hash) error {
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

// Overtaken takes note that the archive has blocks up to ref which did not come
// through the tip. It lets go of every block that does not come after ref; where
// the head is one of these, and ref not on its branch, ref is the head from now on.
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
	return t.letGo(ctx, next, gone)
}

// publish writes a batch and the pointer to a tree, and shows the tree to readers
// once both are durable.
func (t *Tip) publish(ctx context.Context, batch kv.Batch, next *tree) error {
	if err := t.save(ctx, batch, next); err != nil {
		return err
	}
	before := t.tree.Swap(next)
	if before.head.Ref() != next.head.Ref() || before.safe != next.safe || before.finalized != next.finalized {
		moved := make(chan struct{})
		close(*t.moved.Swap(&moved))
	}
	return nil
}

// save writes a batch and the pointer to a tree, durably.
func (t *Tip) save(ctx context.Context, batch kv.Batch, next *tree) error {
	batch.SetPointer(pointerTip, next.encode())
	if err := t.store.Write(ctx, batch); err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	if err := t.store.Sync(ctx); err != nil {
		return fmt.Errorf("tip: %w", err)
	}
	return nil
}

// copy returns a tree whose blocks can be changed.
func (n *tree) copy() *tree {
	next := *n
	next.blocks = maps.Clone(n.blocks)
	return &next
}

// add takes in a block whose parent is there.
func (n *tree) add(block *Block) {
	if block.ref.Number%mergeEvery == 0 {
		block.merge(n.blocks)
	}
	n.blocks[block.ref.Hash] = block
}

// branch is the way from the settled block to the one with that hash.
func (n *tree) branch(hash common.Hash) (*Branch, error) {
	if hash == n.settled.Hash {
		return newBranch(n.settled, nil), nil
	}
	block := n.blocks[hash]
	if block == nil {
		return nil, fmt.Errorf("%w: %x", ErrUnknownBlock, hash)
	}
	blocks := make([]*Block, block.ref.Number-n.settled.Number)
	for i := len(blocks) - 1; i >= 0; i-- {
		blocks[i], block = block, n.blocks[block.parent]
	}
	return newBranch(n.settled, blocks), nil
}

// settle makes ref the settled block, takes out the blocks that do not come after
// it, and returns their hashes.
func (n *tree) settle(ref chain.Ref) (gone []common.Hash) {
	n.settled = ref
	return n.drop(func(block *Block) bool { return block.ref.Number <= ref.Number })
}

// prune takes out blocks while there are most or more, but none of the branches of the
// head and of keep, and returns their hashes.
func (n *tree) prune(most int, keep common.Hash) (gone []common.Hash) {
	kept := make(map[common.Hash]bool)
	for _, end := range []common.Hash{n.head.Ref().Hash, keep} {
		for block := n.blocks[end]; block != nil; block = n.blocks[block.parent] {
			kept[block.ref.Hash] = true
		}
	}
	return n.drop(func(block *Block) bool { return len(n.blocks) >= most && !kept[block.ref.Hash] })
}

// drop takes out the blocks that are unwanted, which it is asked of each in ascending
// order, and those whose parent is not there any more. It returns their hashes.
func (n *tree) drop(unwanted func(*Block) bool) (gone []common.Hash) {
	ascending := slices.SortedFunc(maps.Values(n.blocks), func(a, b *Block) int {
		return cmp.Or(cmp.Compare(a.ref.Number, b.ref.Number), a.ref.Hash.Cmp(b.ref.Hash))
	})
	for _, block := range ascending {
		orphan := block.parent != n.settled.Hash && n.blocks[block.parent] == nil
		if orphan || unwanted(block) {
			delete(n.blocks, block.ref.Hash)
			gone = append(gone, block.ref.Hash)
		}
	}
	return gone
}
