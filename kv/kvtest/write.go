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

// pointer expresses the outcome of Pointer as text.
func pointer(s kv.Store, name string) string {
	v, err := s.Pointer(context.Background(), name)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%q", v)
}

func testPointers(t *testing.T, s kv.Store) {
	expect(t, "no pointer", pointer(s, "head"), notFound)
	b := s.NewBatch()
	b.SetPointer("head", []byte("one"))
	b.SetPointer("head2", nil)
	b.Put(list, []byte("head"), 1, []byte("row"))
	write(t, s, b)
	expect(t, "head", pointer(s, "head"), `"one"`)
	expect(t, "a pointer with an empty value", pointer(s, "head2"), `""`)
	expect(t, "a beginning of a pointer's name", pointer(s, "hea"), notFound)
	expect(t, "a row named as the pointer", get(s, list, "head", 1), `"row"`)
	b.Reset()
	b.SetPointer("head", []byte("two"))
	b.SetPointer("head", []byte("three"))
	write(t, s, b)
	expect(t, "the last of two in one batch", pointer(s, "head"), `"three"`)
}

func testCompareAndSet(t *testing.T, s kv.Store) {
	ctx := context.Background()
	for i, c := range []struct {
		old, value []byte
		want       error
		now        string
	}{
		{[]byte("x"), []byte("a"), kv.ErrConflict, notFound},
		{[]byte{}, []byte("a"), kv.ErrConflict, notFound},
		{nil, []byte("a"), nil, `"a"`},
		{nil, []byte("b"), kv.ErrConflict, `"a"`},
		{[]byte("b"), []byte("c"), kv.ErrConflict, `"a"`},
		{[]byte("a"), []byte("b"), nil, `"b"`},
		{[]byte("b"), nil, nil, `""`},
		{nil, []byte("d"), kv.ErrConflict, `""`},
		{[]byte{}, []byte("d"), nil, `"d"`},
	} {
		if err := s.CompareAndSet(ctx, "p", c.old, c.value); !errors.Is(err, c.want) {
			t.Errorf("case %d: %q to %q: got %v, expected %v", i, c.old, c.value, err, c.want)
		}
		expect(t, fmt.Sprint("case ", i), pointer(s, "p"), c.now)
	}
	b := s.NewBatch()
	b.SetPointer("p", []byte("written"))
	write(t, s, b)
	if err := s.CompareAndSet(ctx, "p", []byte("written"), []byte("e")); err != nil {
		t.Errorf("after a Write of the pointer: %v", err)
	}
}

func testCompareAndSetContended(t *testing.T, s kv.Store) {
	const workers, rounds = 4, 8
	ctx := context.Background()
	if err := s.CompareAndSet(ctx, "counter", nil, []byte{0}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < rounds; {
				old, err := s.Pointer(ctx, "counter")
				if err != nil {
					t.Error(err)
					return
				}
				err = s.CompareAndSet(ctx, "counter", old, []byte{old[0] + 1})
				switch {
				case err == nil:
					done++
				case !errors.Is(err, kv.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	expect(t, "counter", pointer(s, "counter"), fmt.Sprintf("%q", []byte{workers * rounds}))
}

func testBatchReuse(t *testing.T, s kv.Store) {
	b := s.NewBatch()
	if b.Rows() != 0 {
		t.Errorf("a new batch has %d rows", b.Rows())
	}
	write(t, s, b) // nothing, which is allowed
	empty := b.Bytes()
	b.Put(list, []byte("p"), 1, make([]byte, 1000))
	b.SetPointer("head", []byte("1"))
	if b.Rows() != 2 || b.Bytes() < empty+1000 {
		t.Errorf("a batch with a row of 1000 bytes and a pointer has %d rows and %d bytes", b.Rows(), b.Bytes())
	}
	rows, size := b.Rows(), b.Bytes()
	write(t, s, b)
	if b.Rows() != rows || b.Bytes() != size {
		t.Errorf("Write changed the batch from %d rows, %d bytes to %d, %d", rows, size, b.Rows(), b.Bytes())
	}
	write(t, s, b) // again, and longer
	b.Put(list, []byte("p"), 2, []byte("two"))
	write(t, s, b)
	expect(t, "row added to a written batch", get(s, list, "p", 2), `"two"`)
	b.Reset()
	if b.Rows() != 0 || b.Bytes() != empty {
		t.Errorf("after Reset: %d rows, %d bytes", b.Rows(), b.Bytes())
	}
	b.Put(list, []byte("p"), 3, []byte("three"))
	write(t, s, b)
	expect(t, "row of a batch after Reset", get(s, list, "p", 3), `"three"`)

	// A batch that is larger than most buffers, then a small one in its place.
	b.Reset()
	for i := range uint64(24) {
		b.Put(list, []byte("large"), i, make([]byte, 1<<20))
	}
	write(t, s, b)
	b.Reset()
	b.Put(list, []byte("large"), 100, []byte("after"))
	write(t, s, b)
	expect(t, "row after a large batch", get(s, list, "large", 100), `"after"`)
	v, err := s.Get(context.Background(), list, []byte("large"), 23, nil)
	if err != nil || len(v) != 1<<20 {
		t.Errorf("last row of a large batch: %d bytes, %v", len(v), err)
	}
}

func testBatchCopies(t *testing.T, s kv.Store) {
	partition, value, at := []byte("p"), []byte("value"), []byte("at")
	b := s.NewBatch()
	b.Put(list, partition, 1, value)
	b.SetPointer("head", at)
	partition[0], value[0], at[0] = 'x', 'x', 'x'
	write(t, s, b)
	expect(t, "row", get(s, list, "p", 1), `"value"`)
	expect(t, "pointer", pointer(s, "head"), `"at"`)
}

func testRewriteSameRow(t *testing.T, s kv.Store) {
	for range 3 {
		put(t, s, row{versions, "p", 1, "same"}, row{versions, "p", 1, "same"})
	}
	expect(t, "row written again", newest(s, versions, "p", 9), `1="same"`)
	expect(t, "row written again", scan(t, s, versions, "p", 0, 9), `1="same" `)
}

func testDrop(t *testing.T, s kv.Store) {
	ctx := context.Background()
	drop := func(table *kv.Table, partition string) {
		t.Helper()
		if err := s.Drop(ctx, table, []byte(partition)); err != nil {
			t.Fatalf("Drop %s %q: %v", table.Name, partition, err)
		}
	}
	for _, table := range []*kv.Table{transient, passing} {
		// Neighbours in every direction: none of them goes.
		near := []string{"", "p", "p\x00", "p\x00\x00", "p\x01", "pp", "o\xff", "p\xff", "q"}
		for round := range 2 { // dropped rows may be written again
			for _, partition := range near {
				for _, sort := range []uint64{0, 7, math.MaxUint64} {
					put(t, s, row{table, partition, sort, "v"})
				}
			}
			for i, gone := range near {
				if round == 1 {
					if err := s.Compact(ctx); err != nil {
						t.Fatal(err)
					}
				}
				drop(table, gone)
				for j, partition := range near {
					want := `0="v" 7="v" 18446744073709551615="v" `
					if j <= i {
						want = ""
					}
					what := fmt.Sprintf("%s %q after dropping %q", table.Name, partition, gone)
					expect(t, what, scan(t, s, table, partition, 0, math.MaxUint64), want)
				}
				expect(t, "Newest of a dropped partition", newest(s, table, gone, 9), notFound)
				expect(t, "Get from a dropped partition", get(s, table, gone, 7), notFound)
			}
			if rows := walk(t, s, table); len(rows) != 0 {
				t.Errorf("Walk of %s after everything was dropped: %d rows", table.Name, len(rows))
			}
		}
	}
	drop(transient, "never written")
	put(t, s, row{list, "kept", 1, "v"})
	if err := s.Drop(ctx, list, []byte("kept")); err == nil {
		t.Error("a partition of a table that is not transient is dropped")
	}
	expect(t, "row of a table that is not transient", get(s, list, "kept", 1), `"v"`)
}

// testReadsOwnWrites has some goroutines write and at once read, while all of
// them invalidate each other's views.
func testReadsOwnWrites(t *testing.T, s kv.Store) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			p := fmt.Sprint("writer ", w)
			for i := range uint64(100) {
				put(t, s, row{versions, p, i, fmt.Sprint(i)})
				expect(t, p, newest(s, versions, p, math.MaxUint64), fmt.Sprintf("%d=%q", i, fmt.Sprint(i)))
				expect(t, p, get(s, versions, p, i), fmt.Sprintf("%q", fmt.Sprint(i)))
				c := s.Scan(context.Background(), versions, []byte(p), i, i)
				if !c.Next() {
					t.Errorf("%s: row %d is not in a scan", p, i)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// testPointerAfterRows reads a pointer and then the rows that were written with
// it: they are always there.
func testPointerAfterRows(t *testing.T, s kv.Store, batches int) {
	const rows = 5
	ctx := context.Background()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for over := false; !over; {
				select {
				case <-done:
					over = true // but look once more, at the end state
				default:
				}
				v, err := s.Pointer(ctx, "head")
				if errors.Is(err, kv.ErrNotFound) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				n := binary.BigEndian.Uint64(v)
				for i := range uint64(rows) {
					p := fmt.Sprint("p", i)
					expect(t, fmt.Sprintf("row %s of batch %d", p, n), get(s, versions, p, n), fmt.Sprintf("%q", fmt.Sprint(n)))
				}
			}
		})
	}
	b := s.NewBatch()
	for n := range uint64(batches) {
		b.Reset()
		b.SetPointer("head", binary.BigEndian.AppendUint64(nil, n))
		for i := range rows {
			b.Put(versions, []byte(fmt.Sprint("p", i)), n, []byte(fmt.Sprint(n)))
		}
		write(t, s, b)
	}
	close(done)
	wg.Wait()
}

// testConcurrentReads has every kind of read go on beside writes. Rows are
// written in ascending order, so what a reader sees can only grow.
func testConcurrentReads(t *testing.T, s kv.Store, rows uint64) {
	ctx := context.Background()
	done := make(chan struct{})
	var wg sync.WaitGroup
	reading := func(read func() (seen uint64)) {
		wg.Go(func() {
			before := uint64(0)
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
				}
				seen := read()
				if seen < before {
					t.Errorf("saw %d rows after %d", seen, before)
					return
				}
				before = seen
			}
			if before != rows {
				t.Errorf("saw %d rows at the end, expected %d", before, rows)
			}
		})
	}
	reading(func() uint64 {
		_, sort, err := s.Newest(ctx, versions, []byte("p"), math.MaxUint64, nil)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			t.Error(err)
		}
		return sort
	})
	for _, table := range bothKinds() {
		reading(func() (n uint64) {
			c := s.Scan(ctx, table, []byte("p"), 0, math.MaxUint64)
			for ok := c.Next(); ok; ok = c.Next() {
				n++
				if c.Sort() != n {
					t.Errorf("row %d of a scan is %d", n, c.Sort())
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return n
		})
	}
	reading(func() (n uint64) {
		for r, err := range s.Walk(ctx, list, 0) {
			if err != nil {
				t.Error(err)
			}
			n = max(n, r.Sort)
		}
		return n
	})
	for i := range rows {
		put(t, s, row{versions, "p", i + 1, "v"}, row{list, "p", i + 1, "v"})
	}
	close(done)
	wg.Wait()
}
