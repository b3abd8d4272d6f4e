package rewind_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"testing"

	"ashlar/chain"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/internal/raced"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

var errBroken = errors.New("the disk is broken")

// failing is a store of which one operation fails, and all others succeed. A write that fails is not applied.
type failing struct {
	kv.Store
	left    int // operations before the one that fails; negative: it has failed, or none is to
	largest int // bytes of the largest batch that was written
	writes  int
}

func (f *failing) operation() error {
	f.left--
	if f.left == -1 {
		return errBroken
	}
	return nil
}

func (f *failing) Piecewise() {}

func (f *failing) Pointer(ctx context.Context, name string) ([]byte, error) {
	if err := f.operation(); err != nil {
		return nil, err
	}
	return f.Store.Pointer(ctx, name)
}

func (f *failing) Write(ctx context.Context, batch kv.Batch) error {
	if err := f.operation(); err != nil {
		return err
	}
	f.writes, f.largest = f.writes+1, max(f.largest, batch.Bytes())
	return f.Store.Write(ctx, batch)
}

func (f *failing) Sync(ctx context.Context) error {
	if err := f.operation(); err != nil {
		return err
	}
	return f.Store.Sync(ctx)
}

func (f *failing) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	if err := f.operation(); err != nil {
		return err
	}
	return f.Store.CompareAndSet(ctx, name, old, value)
}

func (f *failing) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	if err := f.operation(); err != nil {
		return err
	}
	return f.Store.Drop(ctx, t, partition)
}

func (f *failing) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	if err := f.operation(); err != nil {
		return func(yield func(kv.Row, error) bool) { yield(kv.Row{}, err) }
	}
	return f.Store.Walk(ctx, t, from)
}

// TestFailuresAreReported: whichever operation fails, the rewind says so, and is complete when it is run again. Nothing of what it
// is to remove or to set passes for done.
func TestFailuresAreReported(t *testing.T) {
	names := &kv.Table{ID: 0xfb, Name: "rewind_names", Kind: kv.List}
	name := rewind.Row{Table: names, Partition: []byte("name of block 3"), Sort: 0}
	for _, interrupted := range []bool{false, true} {
		t.Run(fmt.Sprintf("interrupted before %t", interrupted), func(t *testing.T) { failEach(t, name, interrupted) })
	}
}

// failEach has each operation of a rewind fail, or of one that completes another one.
func failEach(t *testing.T, name rewind.Row, interrupted bool) {
	for n := 0; ; n++ {
		below := settled(t, 3, func(b kv.Batch) {
			for block := uint64(1); block <= 3; block++ {
				b.Put(table, []byte("account"), block, []byte("value"))
			}
			b.Put(name.Table, name.Partition, name.Sort, []byte("3"))
		})
		of, err := tip.Open(t.Context(), below, plan().Tables, chain.Ref{Number: 3, Hash: common.Hash{3}})
		if err == nil {
			err = of.Add(t.Context(), chain.Ref{Number: 4, Hash: common.Hash{4}}, common.Hash{3}, new(tip.Rows))
		}
		if err != nil {
			t.Fatal(err)
		}
		store := &failing{Store: below, left: n}
		p := plan()
		p.Others = func(context.Context) ([]rewind.Row, error) { return []rewind.Row{name}, store.operation() }
		p.Pointers = func(b kv.Batch) { b.SetPointer("further", []byte("set")) }
		hash := p.Hash
		p.Hash = func(ctx context.Context) (common.Hash, error) {
			if err := store.operation(); err != nil {
				return common.Hash{}, err
			}
			return hash(ctx)
		}
		if interrupted {
			broken := p
			broken.Others = func(context.Context) ([]rewind.Row, error) { return nil, errBroken }
			if _, err := rewind.Run(t.Context(), below, broken, nil); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			store.left = n
		}
		_, err = rewind.Run(t.Context(), store, p, nil)
		all := store.left >= 0
		if all && (err != nil || n == 0) || !all && !errors.Is(err, errBroken) {
			t.Errorf("operation %d of the rewind fails: %t, %v", n, !all, err)
		}
		if !all {
			if value, err := below.Pointer(t.Context(), kv.EpochPointer); err == nil && binary.BigEndian.Uint64(value)%2 == 0 {
				t.Errorf("operation %d fails, and the rewind passes for complete", n)
			}
			if _, err = rewind.Run(t.Context(), store, p, nil); err != nil {
				t.Errorf("run again after operation %d failed: %v", n, err)
			}
		}
		checkRewound(t, below, name)
		if all {
			return
		}
	}
}

// boardOf is a store whose board fails.
type boardOf struct{ *watched }

func (boardOf) Posts(context.Context) (map[string][]byte, error) { return nil, errBroken }

// TestReadersAreNotKnown: no row is removed if it cannot be known whether another process reads it.
func TestReadersAreNotKnown(t *testing.T) {
	below := settled(t, 3, func(b kv.Batch) { b.Put(table, []byte("account"), 3, []byte("value")) })
	if _, err := rewind.Run(t.Context(), boardOf{&watched{Store: below, t: t, left: 1}}, plan(), nil); !errors.Is(err, errBroken) {
		t.Errorf("%v, expected %v", err, errBroken)
	}
	if _, err := below.Get(t.Context(), table, []byte("account"), 3, nil); err != nil {
		t.Errorf("a row of which readers are not known: %v", err)
	}
}

// checkRewound checks a store that went back to block 1.
func checkRewound(t *testing.T, store kv.Store, other rewind.Row) {
	t.Helper()
	if last, ok, err := rows.Settled(t.Context(), store); err != nil || !ok || last != (chain.Ref{Number: 1, Hash: common.Hash{1}}) {
		t.Errorf("the settled block is %s, %v, expected 1", last, err)
	}
	for _, row := range []rewind.Row{{Table: table, Partition: []byte("account"), Sort: 2}, {Table: table, Partition: []byte("account"), Sort: 3}, other} {
		if _, err := store.Get(t.Context(), row.Table, row.Partition, row.Sort, nil); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("row %s %d of %s: %v, expected none", row.Partition, row.Sort, row.Table.Name, err)
		}
	}
	for row := range store.Walk(t.Context(), tip.Tables()[0], 0) {
		t.Errorf("the unsettled block %x is left", row.Partition)
	}
	if value, err := store.Pointer(t.Context(), "further"); string(value) != "set" {
		t.Errorf("the further pointer: %q, %v", value, err)
	}
	if value, err := store.Pointer(t.Context(), "settling"); err != nil || len(value) > 0 {
		t.Errorf("blocks that were being settled: %x, %v, expected that they are forgotten", value, err)
	}
	if _, removing, err := kv.Epoch(t.Context(), store); removing || err != nil {
		t.Errorf("rows are still being removed: %t, %v", removing, err)
	}
}

// TestBatchesAreBounded: removals are written while more are found, so that memory does not grow with the rows.
func TestBatchesAreBounded(t *testing.T) {
	raced.Skip(t)
	const partitions = 100_000
	below := settled(t, 2, func(b kv.Batch) {
		for i := range uint64(partitions) {
			b.Put(table, binary.BigEndian.AppendUint64(nil, i), 2, nil)
		}
	})
	store := &failing{Store: below, left: -1}
	done, err := rewind.Run(t.Context(), store, plan(), nil)
	if err != nil || done.Rows != partitions {
		t.Fatalf("%d rows are removed, %v, expected %d", done.Rows, err, partitions)
	}
	if store.largest > 1<<20+1<<10 || store.writes > 20 {
		t.Errorf("%d writes, the largest with %d bytes, expected some of a MiB each", store.writes, store.largest)
	}
}
