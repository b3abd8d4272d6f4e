package kvtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"ashlar/kv"
)

// removing writes one batch of removals.
func removing(t testing.TB, s kv.Store, fill func(kv.Batch)) {
	t.Helper()
	b := s.NewBatch()
	fill(b)
	write(t, s, b)
}

func testDelete(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		for _, p := range []string{"", "p", "p\x00", "q"} {
			put(t, s, row{table, p, 0, "0"}, row{table, p, 7, "7"}, row{table, p, 8, "8"}, row{table, p, math.MaxUint64, "max"})
		}
		removing(t, s, func(b kv.Batch) {
			b.Delete(table, []byte("p"), 7)
			b.Delete(table, []byte("p"), math.MaxUint64)
			b.Delete(table, []byte("p"), 9)      // not there
			b.Delete(table, []byte("absent"), 7) // not there
			b.Delete(table, nil, 0)
			if b.Rows() != 5 || b.Bytes() == 0 {
				t.Errorf("a batch of 5 removals has %d rows and %d bytes", b.Rows(), b.Bytes())
			}
		})
		expect(t, "Get of a removed row", get(s, table, "p", 7), notFound)
		expect(t, "Newest at a removed row", newest(s, table, "p", 7), `0="0"`)
		expect(t, "Newest above the rows", newest(s, table, "p", math.MaxUint64), `8="8"`)
		expect(t, "the rest", scan(t, s, table, "p", 0, math.MaxUint64), `0="0" 8="8" `)
		expect(t, "the empty partition", scan(t, s, table, "", 0, math.MaxUint64), `7="7" 8="8" 18446744073709551615="max" `)
		for _, p := range []string{"p\x00", "q"} {
			expect(t, "a neighbour", scan(t, s, table, p, 0, math.MaxUint64), `0="0" 7="7" 8="8" 18446744073709551615="max" `)
		}
		if rows := walk(t, s, table); len(rows) != 13 {
			t.Errorf("Walk of %s: %d rows, expected 13", table.Name, len(rows))
		}
	}
	b := s.NewBatch()
	b.Delete(list, make([]byte, kv.MaxPartition+1), 1)
	if err := s.Write(context.Background(), b); err == nil {
		t.Error("Delete with a partition that is too long: no error")
	}
}

func testDeleteRange(t *testing.T, s kv.Store) {
	const top = math.MaxUint64
	for _, table := range bothKinds() {
		for i, c := range []struct {
			from, to uint64
			want     string
		}{
			{10, 30, `0="0" 40="40" 18446744073709551615="18446744073709551615" `},
			{11, 30, `0="0" 10="10" 40="40" 18446744073709551615="18446744073709551615" `},
			{9, 29, `0="0" 30="30" 40="40" 18446744073709551615="18446744073709551615" `},
			{0, 0, `10="10" 20="20" 30="30" 40="40" 18446744073709551615="18446744073709551615" `},
			{20, top, `0="0" 10="10" `},
			{top, top, `0="0" 10="10" 20="20" 30="30" 40="40" `},
			{0, top, ``},
			{0, top - 1, `18446744073709551615="18446744073709551615" `},
			{41, top - 1, `0="0" 10="10" 20="20" 30="30" 40="40" 18446744073709551615="18446744073709551615" `},
			{30, 10, `0="0" 10="10" 20="20" 30="30" 40="40" 18446744073709551615="18446744073709551615" `},
		} {
			near := []string{"", "p", "p\x00", "p\x00\x00", "p\x01", "pp", "o\xff", "p\xff", "q"}
			name := func(p string) string { return fmt.Sprintf("%d%s", i, p) }
			var rows []row
			for _, p := range near {
				for _, sort := range []uint64{0, 10, 20, 30, 40, top} {
					rows = append(rows, row{table, name(p), sort, fmt.Sprint(sort)})
				}
			}
			put(t, s, rows...)
			whole := scan(t, s, table, name("q"), 0, top)
			removing(t, s, func(b kv.Batch) { b.DeleteRange(table, []byte(name("p")), c.from, c.to) })
			for _, p := range near {
				want := whole
				if p == "p" {
					want = c.want
				}
				what := fmt.Sprintf("%s %q after removing [%d, %d] of \"p\"", table.Name, p, c.from, c.to)
				expect(t, what, scan(t, s, table, name(p), 0, top), want)
			}
		}
	}
}

// testDeletedRowsReturn: a row can be put again after its removal, with another value, as
// often as one likes.
func testDeletedRowsReturn(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		for i := range 20 {
			value := fmt.Sprint("value ", i)
			put(t, s, row{table, "p", 5, value}, row{table, "p", 6, value})
			expect(t, "row put after its removal", get(s, table, "p", 5), fmt.Sprintf("%q", value))
			expect(t, "row put after its removal", newest(s, table, "p", 9), fmt.Sprintf("6=%q", value))
			if i == 10 {
				if err := errors.Join(s.Sync(context.Background()), s.Compact(context.Background())); err != nil {
					t.Fatal(err)
				}
			}
			removing(t, s, func(b kv.Batch) {
				if i%2 == 0 {
					b.Delete(table, []byte("p"), 5)
					b.Delete(table, []byte("p"), 6)
				} else {
					b.DeleteRange(table, []byte("p"), 5, math.MaxUint64)
				}
				b.Put(table, []byte("other"), uint64(i), []byte("v")) // another row: allowed
			})
			expect(t, "removed rows", scan(t, s, table, "p", 0, 9), "")
			expect(t, "row put beside removals", get(s, table, "other", uint64(i)), `"v"`)
		}
	}
}

// testDeleteBesideReads removes rows in ascending order, with a pointer that says how many,
// while others read: a reader that has read the pointer sees none of them.
func testDeleteBesideReads(t *testing.T, s kv.Store, rows uint64) {
	ctx := context.Background()
	for i := range rows {
		put(t, s, row{versions, "p", i, "v"}, row{list, "p", i, "v"})
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, table := range bothKinds() {
		wg.Go(func() {
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
				}
				gone := uint64(0)
				if v, err := s.Pointer(ctx, "gone"); err == nil {
					gone = binary.BigEndian.Uint64(v)
				}
				c := s.Scan(ctx, table, []byte("p"), 0, math.MaxUint64)
				if c.Next() && c.Sort() < gone {
					t.Errorf("%s: row %d is there after %d were removed", table.Name, c.Sort(), gone)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range rows {
		removing(t, s, func(b kv.Batch) {
			b.Delete(versions, []byte("p"), i)
			b.DeleteRange(list, []byte("p"), 0, i)
			b.SetPointer("gone", binary.BigEndian.AppendUint64(nil, i+1))
		})
	}
	close(done)
	wg.Wait()
	for _, table := range bothKinds() {
		if left := walk(t, s, table); len(left) != 0 {
			t.Errorf("%s: %d rows are left", table.Name, len(left))
		}
	}
}

func testEpoch(t *testing.T, s kv.Store) {
	ctx := context.Background()
	if epoch, removing, err := kv.Epoch(ctx, s); epoch != 0 || removing || err != nil {
		t.Errorf("a new store: epoch %d, %v, %v", epoch, removing, err)
	}
	for want := range uint64(4) {
		set := binary.BigEndian.AppendUint64(nil, want)
		removing(t, s, func(b kv.Batch) { b.SetPointer(kv.EpochPointer, set) })
		if epoch, removing, err := kv.Epoch(ctx, s); epoch != want || removing != (want == 1 || want == 3) || err != nil {
			t.Errorf("epoch %d, %v, %v, expected %d", epoch, removing, err, want)
		}
	}
	removing(t, s, func(b kv.Batch) { b.SetPointer(kv.EpochPointer, []byte("1")) })
	if _, _, err := kv.Epoch(ctx, s); err == nil {
		t.Error("an epoch of one byte: no error")
	}
}
