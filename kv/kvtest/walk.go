package kvtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"testing"

	"ashlar/kv"
)

// walk collects a table and checks that partitions come one after the other, and rows in the
// order of the table's kind.
func walk(t *testing.T, s kv.Store, table *kv.Table) []row {
	t.Helper()
	var out []row
	left := map[string]bool{} // partitions that the walk has left
	for r, err := range s.Walk(context.Background(), table, 0) {
		if err != nil {
			t.Errorf("Walk of %s: %v", table.Name, err)
			break
		}
		now := row{table, string(r.Partition), r.Sort, string(r.Value)}
		if n := len(out); n > 0 {
			before := out[n-1]
			if before.partition != now.partition {
				left[before.partition] = true
			} else {
				if now.sort == before.sort {
					t.Errorf("Walk of %s: %q %d twice", table.Name, now.partition, now.sort)
				}
				if descends := now.sort < before.sort; descends != (table.Kind == kv.Versions) {
					t.Errorf("Walk of %s of kind %d: %q %d after %d", table.Name, table.Kind, now.partition, now.sort, before.sort)
				}
			}
		}
		if left[now.partition] {
			t.Errorf("Walk of %s: came back to partition %q", table.Name, now.partition)
		}
		out = append(out, now)
	}
	return out
}

func testWalk(t *testing.T, s kv.Store) {
	for _, table := range []*kv.Table{versions, list, last} {
		if rows := walk(t, s, table); len(rows) != 0 {
			t.Errorf("Walk of an empty %s: %d rows", table.Name, len(rows))
		}
	}
	m := newModel()
	b := s.NewBatch()
	b.SetPointer("head", []byte("not a row"))
	for _, table := range []*kv.Table{versions, list, last} {
		for i, p := range partitions() {
			for _, sort := range []uint64{0, 5, math.MaxUint64} {
				r := row{table, p, sort, fmt.Sprintf("%s %d %d", table.Name, i, sort)}
				m.put(r)
				b.Put(table, []byte(p), sort, []byte(r.value))
			}
		}
	}
	write(t, s, b)
	m.checkAll(t, s)
	// Leaving early is allowed, and a walk may be ranged over again.
	rows := s.Walk(context.Background(), list, 0)
	for range 2 {
		for r, err := range rows {
			if err != nil || !bytes.Contains(r.Value, []byte(list.Name)) {
				t.Errorf("got %q, %v", r.Value, err)
			}
			break
		}
	}
}

func testWalkFrom(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		for _, p := range []string{"a", "b", "b\x00", ""} {
			for _, sort := range []uint64{0, 5, 7, math.MaxUint64} {
				put(t, s, row{table, p, sort, "v"})
			}
		}
		put(t, s, row{table, "low", 4, "v"}, row{last, "p", 9, "v"})
		check := func(from uint64, want int) {
			t.Helper()
			n := 0
			for r, err := range s.Walk(context.Background(), table, from) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; r.Sort < from {
					t.Errorf("Walk of %s from %d: row %q %d", table.Name, from, r.Partition, r.Sort)
				}
			}
			if n != want {
				t.Errorf("Walk of %s from %d: %d rows, expected %d", table.Name, from, n, want)
			}
		}
		for range 2 { // from memory, and from the smallest form
			for from, want := range map[uint64]int{0: 17, 1: 13, 5: 12, 6: 8, 8: 4, math.MaxUint64: 4} {
				check(from, want)
			}
			if err := s.Compact(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// testWalkAfter interrupts walks after each partition, and goes on from there: for two
// partitions, and after every tenth one to the end.
func testWalkAfter(t *testing.T, s kv.Store, partitions int) {
	const size = 50 // rows of a partition: more than a small page
	for _, table := range bothKinds() {
		b := s.NewBatch()
		for i := range partitions {
			partition := fmt.Appendf(nil, "%04x", i*i)[:4*min(i, 1)] // the first is empty
			for sort := range uint64(size) {
				b.Put(table, partition, sort, []byte("v"))
			}
		}
		b.Put(last, []byte("p"), 9, []byte("v"))
		write(t, s, b)
		whole := walk(t, s, table)
		for i, r := range whole {
			if i+1 < len(whole) && whole[i+1].partition == r.partition {
				continue
			}
			rest, share := whole[i+1:], 0.0
			stops := i/size%10 != 0 && len(rest) > 2*size
			if stops {
				rest = rest[:2*size]
			}
			for got, err := range s.WalkAfter(context.Background(), table, []byte(r.partition), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if stops && len(rest) == 0 {
					break
				}
				if len(rest) == 0 || rest[0].partition != string(got.Partition) || rest[0].sort != got.Sort {
					t.Fatalf("WalkAfter of %s after %q: row %q %d, expected %d other rows", table.Name, r.partition, got.Partition, got.Sort, len(rest))
				}
				if got.Walked < share || got.Walked > 1 {
					t.Fatalf("WalkAfter of %s: a share of %v after %v", table.Name, got.Walked, share)
				}
				rest, share = rest[1:], got.Walked
			}
			if len(rest) > 0 {
				t.Errorf("WalkAfter of %s after %q: %d rows are missing", table.Name, r.partition, len(rest))
			}
		}
	}
}

func testAllPointers(t *testing.T, s kv.Store) {
	check := func(want map[string][]byte) {
		t.Helper()
		got, err := s.Pointers(context.Background())
		if err != nil || !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("Pointers: %q, %v, expected %q", got, err, want)
		}
	}
	check(nil)
	b := s.NewBatch()
	b.SetPointer("head", []byte("1"))
	b.SetPointer("empty", nil)
	b.SetPointer("another", []byte("name"))
	b.Put(list, []byte("p"), 1, []byte("a row"))
	write(t, s, b)
	check(map[string][]byte{"head": []byte("1"), "empty": {}, "another": []byte("name")})
}
