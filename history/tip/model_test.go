package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

// Tables like those of an archive: versions, one row per block, rows with an index in their block,
// and rows that belong to no block.
var (
	versions = &kv.Table{ID: 1, Name: "versions", Kind: kv.Versions}
	perBlock = &kv.Table{ID: 2, Name: "per_block", Kind: kv.List}
	indexed  = &kv.Table{ID: 3, Name: "indexed", Kind: kv.List, IndexBits: 4}
	blobs    = &kv.Table{ID: 4, Name: "blobs", Kind: kv.List}
)

func allTables() []*kv.Table { return []*kv.Table{versions, perBlock, indexed, blobs} }

type modelRow struct {
	table     *kv.Table
	partition string
	sort      uint64
	value     string
}

type modelBlock struct {
	ref    chain.Ref
	parent *modelBlock
	rows   []modelRow
}

// world is a tip with a model of it: all blocks ever added, with pointers to their parents.
type world struct {
	*rand.Rand
	t       *testing.T
	store   kv.Store
	tip     *tip.Tip
	made    []*modelBlock
	settled *modelBlock
	head    *modelBlock
	safe    chain.Ref
	held    []heldBranch
}

func openStore(t *testing.T, fs vfs.FS) kv.Store {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "store", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, store: openStore(t, vfs.NewMem())}
	t.Cleanup(func() { w.store.Close() })
	w.settled = &modelBlock{ref: chain.Ref{Number: uint64(w.IntN(40)), Hash: common.Hash{0xff}}}
	w.made, w.head = []*modelBlock{w.settled}, w.settled
	w.open()
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	if w.tip, err = tip.Open(context.Background(), w.store, allTables(), w.settled.ref); err != nil {
		w.t.Fatal(err)
	}
	w.held = nil
}

// block creates a block with random rows after parent.
func (w *world) block(parent *modelBlock) *modelBlock {
	b := &modelBlock{parent: parent}
	b.ref.Number = parent.ref.Number + 1
	binary.BigEndian.PutUint64(b.ref.Hash[:], w.Uint64())
	for i := range w.IntN(8) {
		r := modelRow{partition: fmt.Sprint("p", w.IntN(6)), value: fmt.Sprint("v", w.Uint64())}
		switch w.IntN(4) {
		case 0:
			r.table, r.sort = versions, b.ref.Number
		case 1:
			r.table, r.sort = perBlock, b.ref.Number
		case 2:
			r.table, r.sort = indexed, b.ref.Number<<4|uint64(i)
		case 3: // content-addressed: the same value in every block
			r.table, r.value = blobs, r.partition
		}
		if !slices.ContainsFunc(b.rows, func(o modelRow) bool { return o.table == r.table && o.partition == r.partition && o.sort == r.sort }) {
			b.rows = append(b.rows, r)
		}
	}
	return b
}

// seen returns the rows visible as of a block: its own and those of its ancestors.
func (b *modelBlock) seen(table *kv.Table, partition string) seenRows {
	rows := make(seenRows)
	for ; b != nil; b = b.parent {
		for _, r := range b.rows {
			if r.table == table && r.partition == partition {
				rows[r.sort] = r.value
			}
		}
	}
	return rows
}

func (b *modelBlock) isAfter(ancestor *modelBlock) bool {
	for b != nil && b != ancestor {
		b = b.parent
	}
	return b != nil
}

// known reports whether a block should be in the tip or settled.
func (w *world) known(b *modelBlock) bool { return b.isAfter(w.settled) }

func (w *world) choose() *modelBlock { return w.made[w.IntN(len(w.made))] }

func (w *world) add(b *modelBlock) {
	w.t.Helper()
	rows := new(tip.Rows)
	for _, r := range b.rows {
		rows.Put(r.table, []byte(r.partition), r.sort, []byte(r.value))
	}
	err := w.tip.Add(context.Background(), b.ref, b.parent.ref.Hash, rows)
	if w.known(b) || w.known(b.parent) {
		if err != nil {
			w.t.Fatalf("Add %s: %v", b.ref, err)
		}
		if !slices.Contains(w.made, b) {
			w.made = append(w.made, b)
		}
	} else if !errors.Is(err, tip.ErrUnknownParent) {
		w.t.Fatalf("Add %s, whose parent is gone: %v", b.ref, err)
	}
}

func (w *world) setHead(b *modelBlock) {
	w.t.Helper()
	err := w.tip.SetHead(context.Background(), b.ref.Hash, w.settled.ref, chain.Ref{})
	if w.known(b) {
		if err != nil {
			w.t.Fatalf("SetHead %s: %v", b.ref, err)
		}
		w.head, w.safe = b, w.settled.ref
	} else if !errors.Is(err, tip.ErrUnknownBlock) {
		w.t.Fatalf("SetHead %s, which is gone: %v", b.ref, err)
	}
}

// settle settles blocks, as the owner of an archive does. If killed, it stops halfway.
func (w *world) settle(killed bool) {
	w.t.Helper()
	number := w.settled.ref.Number + uint64(w.IntN(6))
	batch := w.store.NewBatch()
	last := w.settled.ref
	for _, block := range w.tip.Unsettled(number) {
		last = block.Ref()
		block.PutRows(batch)
	}
	if err := w.store.Write(context.Background(), batch); err != nil {
		w.t.Fatal(err)
	}
	for b := w.head; b != nil; b = b.parent {
		if b.ref == last {
			w.settled = b
			break
		}
	}
	if killed {
		w.open()
		return
	}
	if err := w.tip.Settled(context.Background(), last); err != nil {
		w.t.Fatal(err)
	}
}

// check compares the tip with the model.
func (w *world) check() {
	w.t.Helper()
	forkchoice := w.tip.Forkchoice()
	if forkchoice.Head.Ref() != w.head.ref || forkchoice.Safe != w.safe {
		w.t.Fatalf("head %s and safe %s, expected %s and %s", forkchoice.Head.Ref(), forkchoice.Safe, w.head.ref, w.safe)
	}
	for _, b := range w.made {
		if w.tip.Has(b.ref.Hash) != w.known(b) {
			w.t.Fatalf("Has %s: %v", b.ref, !w.known(b))
		}
	}
	b := w.choose()
	branch, err := w.tip.Branch(b.ref.Hash)
	if (err == nil) != w.known(b) {
		w.t.Fatalf("Branch %s: %v", b.ref, err)
	}
	if err == nil {
		w.held = append(w.held, heldBranch{branch, b})
	}
	for _, h := range w.held {
		w.checkBranch(h)
	}
	if len(w.held) > 5 {
		w.held = slices.Delete(w.held, 0, 1)
	}
}

// step performs a random operation.
func (w *world) step() {
	w.t.Helper()
	switch w.IntN(20) {
	case 0:
		w.settle(w.IntN(3) == 0)
	case 1:
		w.open()
	case 2:
		w.setHead(w.choose())
	case 3: // a fork, or a block that is already known
		w.add(w.block(w.choose()))
		if b := w.choose(); b.parent != nil {
			w.add(b)
		}
	default:
		parent := w.made[len(w.made)-1-w.IntN(min(3, len(w.made)))]
		w.add(w.block(parent))
		if w.IntN(3) > 0 && w.known(w.made[len(w.made)-1]) {
			w.setHead(w.made[len(w.made)-1])
		}
	}
}

// TestModel performs random operations, including crashes and restarts, and compares the tip with
// a model that keeps every block.
func TestModel(t *testing.T) {
	raced.Skip(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 250 {
				w.step()
				w.check()
			}
		})
	}
}
