package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
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

// heldBranch is a branch that a reader still uses after the tip has changed.
type heldBranch struct {
	branch *tip.Branch
	last   *modelBlock
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
func (b *modelBlock) seen(table *kv.Table, partition string) map[uint64]string {
	rows := make(map[uint64]string)
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

func (w *world) checkBranch(h heldBranch) {
	w.t.Helper()
	ctx := context.Background()
	rows := h.branch.Over(w.store)
	for b := h.last; b != nil && b.ref.Number >= h.branch.Settled().Number; b = b.parent {
		if at, ok := h.branch.At(b.ref.Number); !ok || at != b.ref {
			w.t.Fatalf("At %d: %s, expected %s", b.ref.Number, at, b.ref)
		}
	}
	table, at := allTables()[w.IntN(4)], h.last.ref.Number+2-min(h.last.ref.Number, uint64(w.IntN(30)))
	at = at<<table.IndexBits | uint64(w.IntN(1<<table.IndexBits))
	if table == blobs && w.IntN(2) == 0 {
		at = 0 // where they are
	}
	var keys []kv.Key
	want, got := map[int]string{}, map[int]string{}
	exactly, gotExactly := map[int]string{}, map[int]string{}
	for i := range 6 {
		partition := fmt.Sprint("p", i)
		keys = append(keys, kv.Key{Partition: []byte(partition), Sort: at})
		seen := h.last.seen(table, partition)
		if table == blobs && len(seen) == 0 {
			continue // another branch may have written it, which is harmless
		}
		what := fmt.Sprintf("%s %s at %d on %s over %s", table.Name, partition, at, h.branch.Ref(), h.branch.Settled())
		if newest := newestOf(seen, at); newest != "" {
			want[i] = newest
		}
		value, sort, err := rows.Newest(ctx, table, []byte(partition), at, []byte("dst"))
		if text := describe(value[3:], sort, err); text != want[i] {
			w.t.Fatalf("Newest %s: %q, expected %q", what, text, want[i])
		}
		exact, ok := seen[at]
		if ok {
			exactly[i] = exact
		}
		value, err = rows.Get(ctx, table, []byte(partition), at, nil)
		if ok && string(value) != exact || (err == nil) != ok {
			w.t.Fatalf("Get %s: %q, %v; expected %q", what, value, err, exact)
		}
		if table.Kind == kv.Versions {
			w.checkDescend(what, rows, partition, at, seen)
		}
		w.checkScan(what, rows.Scan(ctx, table, []byte(partition), at/2, at), seen, at/2, at)
	}
	if table == blobs {
		return
	}
	err := rows.NewestMany(ctx, table, keys, func(i int, sort uint64, value []byte) error {
		got[i] += describe(value, sort, nil)
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		w.t.Fatalf("NewestMany: %v, %v; expected %v", got, err, want)
	}
	err = rows.GetMany(ctx, table, keys, func(i int, value []byte) error {
		gotExactly[i] += string(value)
		return nil
	})
	if err != nil || !maps.Equal(gotExactly, exactly) {
		w.t.Fatalf("GetMany: %v, %v; expected %v", gotExactly, err, exactly)
	}
}

func describe(value []byte, sort uint64, err error) string {
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d=%s ", sort, value)
}

func newestOf(seen map[uint64]string, at uint64) string {
	best, ok := uint64(0), false
	for sort := range seen {
		if sort <= at && (!ok || sort > best) {
			best, ok = sort, true
		}
	}
	if !ok {
		return ""
	}
	return describe([]byte(seen[best]), best, nil)
}

// checkDescend reads versions in descending order from at.
func (w *world) checkDescend(what string, rows kv.Reader, partition string, at uint64, seen map[uint64]string) {
	w.t.Helper()
	var want, got []string
	most := 1 + w.IntN(4)
	for _, sort := range slices.Backward(slices.Sorted(maps.Keys(seen))) {
		if sort <= at && len(want) < most {
			want = append(want, describe([]byte(seen[sort]), sort, nil))
		}
	}
	err := rows.Descend(context.Background(), versions, []byte(partition), at, func(sort uint64, value []byte) (bool, error) {
		got = append(got, describe(value, sort, nil))
		return len(got) == most, nil
	})
	if err != nil || !slices.Equal(got, want) {
		w.t.Fatalf("Descend %s: %q, %v; expected %q", what, got, err, want)
	}
}

// checkScan steps and seeks with a cursor.
func (w *world) checkScan(what string, c kv.Cursor, seen map[uint64]string, from, to uint64) {
	w.t.Helper()
	left := slices.Sorted(maps.Keys(seen))
	left = slices.DeleteFunc(left, func(s uint64) bool { return s < from || s > to })
	for first := true; ; first = false {
		var ok bool
		if w.IntN(3) > 0 {
			if !first && len(left) > 0 {
				left = left[1:]
			}
			ok = c.Next()
		} else {
			target := from
			if len(left) > 0 {
				target = left[0] + uint64(w.IntN(6)) - min(left[0], 2) // below: it stays
			}
			for len(left) > 0 && left[0] < target {
				left = left[1:]
			}
			ok = c.Seek(target)
		}
		if ok != (len(left) > 0) || ok && (c.Sort() != left[0] || string(c.Value()) != seen[left[0]]) {
			w.t.Fatalf("Scan %s from %d: %v, expected %v next", what, from, ok, left)
		}
		if !ok {
			break
		}
	}
	if err := c.Close(); err != nil {
		w.t.Fatal(err)
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
