package tip_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ashlar/history/tip"
	"ashlar/kv"
)

// heldBranch is a branch that a reader still uses after the tip has changed.
type heldBranch struct {
	branch *tip.Branch
	last   *modelBlock
}

// checkBranch compares what a branch answers with the model.
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
		if newest := seen.newest(at); newest != "" {
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

// seenRows are the values of a partition that are visible as of a block, by sort key.
type seenRows map[uint64]string

func describe(value []byte, sort uint64, err error) string {
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d=%s ", sort, value)
}

// descending describes the rows at or below a sort key, the greatest first, and no more than most.
func (r seenRows) descending(at uint64, most int) (rows []string) {
	for _, sort := range slices.Backward(slices.Sorted(maps.Keys(r))) {
		if sort <= at && len(rows) < most {
			rows = append(rows, describe([]byte(r[sort]), sort, nil))
		}
	}
	return rows
}

// newest describes the row with the greatest sort key at or below one; "" if there is none.
func (r seenRows) newest(at uint64) string {
	for _, row := range r.descending(at, 1) {
		return row
	}
	return ""
}

// between returns the sort keys from one to another, in ascending order.
func (r seenRows) between(from, to uint64) []uint64 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(sort uint64) bool { return sort < from || sort > to })
}

// checkDescend reads versions in descending order from at.
func (w *world) checkDescend(what string, rows kv.Reader, partition string, at uint64, seen seenRows) {
	w.t.Helper()
	var got []string
	most := 1 + w.IntN(4)
	want := seen.descending(at, most)
	err := rows.Descend(context.Background(), versions, []byte(partition), at, func(sort uint64, value []byte) (bool, error) {
		got = append(got, describe(value, sort, nil))
		return len(got) == most, nil
	})
	if err != nil || !slices.Equal(got, want) {
		w.t.Fatalf("Descend %s: %q, %v; expected %q", what, got, err, want)
	}
}

// checkScan steps and seeks with a cursor.
func (w *world) checkScan(what string, c kv.Cursor, seen seenRows, from, to uint64) {
	w.t.Helper()
	left := seen.between(from, to)
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
