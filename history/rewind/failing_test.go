package rewind_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/ethereum/go-ethereum/common"
)

// piecewise is a failing store whose writes are applied in pieces.
type piecewise struct{ *kvtest.Failing }

func (piecewise) Piecewise() {}

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
		store := piecewise{&kvtest.Failing{Store: below, Left: n}}
		p := plan()
		p.Others = func(context.Context) ([]rewind.Row, error) { return []rewind.Row{name}, store.Operation() }
		p.Pointers = func(b kv.Batch) { b.SetPointer("further", []byte("set")) }
		hash := p.Hash
		p.Hash = func(ctx context.Context) (common.Hash, error) {
			if err := store.Operation(); err != nil {
				return common.Hash{}, err
			}
			return hash(ctx)
		}
		if interrupted {
			broken := p
			broken.Others = func(context.Context) ([]rewind.Row, error) { return nil, kvtest.ErrBroken }
			if _, err := rewind.Run(t.Context(), below, broken, nil); !errors.Is(err, kvtest.ErrBroken) {
				t.Fatal(err)
			}
			store.Left = n
		}
		_, err = rewind.Run(t.Context(), store, p, nil)
		all := store.Left >= 0
		if all && (err != nil || n == 0) || !all && !errors.Is(err, kvtest.ErrBroken) {
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

func (boardOf) Posts(context.Context) (map[string][]byte, error) { return nil, kvtest.ErrBroken }

// TestReadersAreNotKnown: no row is removed if it cannot be known whether another process reads it.
func TestReadersAreNotKnown(t *testing.T) {
	below := settled(t, 3, func(b kv.Batch) { b.Put(table, []byte("account"), 3, []byte("value")) })
	if _, err := rewind.Run(t.Context(), boardOf{&watched{Store: below, t: t, left: 1}}, plan(), nil); !errors.Is(err, kvtest.ErrBroken) {
		t.Errorf("%v, expected %v", err, kvtest.ErrBroken)
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
	store := piecewise{&kvtest.Failing{Store: below, Left: -1}}
	done, err := rewind.Run(t.Context(), store, plan(), nil)
	if err != nil || done.Rows != partitions {
		t.Fatalf("%d rows are removed, %v, expected %d", done.Rows, err, partitions)
	}
	if slices.Max(store.Writes) > 1<<20+1<<10 || len(store.Writes) > 20 {
		t.Errorf("writes of %d bytes, expected some of a MiB each", store.Writes)
	}
}
