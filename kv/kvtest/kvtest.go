// Package kvtest is the suite that every engine of kv passes. It tests the
// contract in package kv and nothing else, so that code above kv can rely on the
// contract alone. For the tests of that code it has a reader that fails, [FailAfter].
package kvtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ashlar/kv"
)

// Tables that the suite writes to. Their IDs are the highest, so a walk that does not
// stop at the end of its table is noticed.
var (
	expectedVersions = &kv.Table{ID: 0xf9, Name: "kvtest_expected_versions", Kind: kv.Versions, Expected: true}
	expectedList     = &kv.Table{ID: 0xfa, Name: "kvtest_expected_list", Kind: kv.List, Expected: true}

	transient = &kv.Table{ID: 0xfb, Name: "kvtest_transient", Kind: kv.List, Transient: true}
	passing   = &kv.Table{ID: 0xfc, Name: "kvtest_passing", Kind: kv.Versions, Transient: true}
	versions  = &kv.Table{ID: 0xfd, Name: "kvtest_versions", Kind: kv.Versions}
	list      = &kv.Table{ID: 0xfe, Name: "kvtest_list", Kind: kv.List}
	last      = &kv.Table{ID: 0xff, Name: "kvtest_last", Kind: kv.List}
)

func bothKinds() []*kv.Table { return []*kv.Table{versions, list} }

// Operations is a usual number of random operations for [Run].
const Operations = 3000

// Run runs the suite. open returns an empty store, another one each time; the suite closes
// it. operations is how many random operations are compared with a model; a store that
// takes milliseconds for each can have fewer than [Operations]. It also has fewer rows
// in the tests that write many.
func Run(t *testing.T, operations int, open func(t *testing.T) kv.Store) {
	tests := []struct {
		name string
		run  func(t *testing.T, s kv.Store)
	}{
		{"Get", testGet},
		{"Newest", testNewest},
		{"SortKeyExtremes", testSortKeyExtremes},
		{"Expected", testExpected},
		{"PartitionsApart", testPartitionsApart},
		{"PartitionTooLong", testPartitionTooLong},
		{"Values", testValues},
		{"Destination", testDestination},
		{"Descend", testDescend},
		{"GetMany", testGetMany},
		{"NewestMany", testNewestMany},
		{"ManyStops", testManyStops},
		{"Scan", testScan},
		{"Seek", testSeek},
		{"CursorAfterClose", testCursorAfterClose},
		{"Pointers", testPointers},
		{"CompareAndSet", testCompareAndSet},
		{"CompareAndSetContended", testCompareAndSetContended},
		{"BatchReuse", testBatchReuse},
		{"BatchCopies", testBatchCopies},
		{"RewriteSameRow", testRewriteSameRow},
		{"ReadsOwnWrites", testReadsOwnWrites},
		{"PointerAfterRows", func(t *testing.T, s kv.Store) { testPointerAfterRows(t, s, max(operations/15, 50)) }},
		{"ConcurrentReads", func(t *testing.T, s kv.Store) { testConcurrentReads(t, s, uint64(max(operations/10, 100))) }},
		{"Drop", testDrop},
		{"Delete", testDelete},
		{"DeleteRange", testDeleteRange},
		{"DeletedRowsReturn", testDeletedRowsReturn},
		{"DeleteBesideReads", func(t *testing.T, s kv.Store) { testDeleteBesideReads(t, s, uint64(max(operations/30, 40))) }},
		{"Epoch", testEpoch},
		{"Walk", testWalk},
		{"WalkFrom", testWalkFrom},
		{"WalkAfter", func(t *testing.T, s kv.Store) { testWalkAfter(t, s, max(operations/50, 25)) }},
		{"AllPointers", testAllPointers},
		{"Model", func(t *testing.T, s kv.Store) { testModel(t, s, operations) }},
		{"Canceled", testCanceled},
		{"Closed", testClosed},
		{"Stats", testStats},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { closeStore(t, s) })
			test.run(t, s)
		})
	}
}

func closeStore(t *testing.T, s kv.Store) {
	t.Helper()
	if err := s.Close(); err != nil && !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

// row is one row as a case writes it down.
type row struct {
	table     *kv.Table
	partition string
	sort      uint64
	value     string
}

// put writes rows in one batch.
func put(t testing.TB, s kv.Store, rows ...row) {
	t.Helper()
	b := s.NewBatch()
	for _, r := range rows {
		b.Put(r.table, []byte(r.partition), r.sort, []byte(r.value))
	}
	write(t, s, b)
}

func write(t testing.TB, s kv.Store, b kv.Batch) {
	t.Helper()
	if err := s.Write(context.Background(), b); err != nil {
		t.Fatalf("Write: %v", err)
	}
}

// get expresses the outcome of Get as text: the value in quotes, or the error.
func get(s kv.Store, table *kv.Table, partition string, sort uint64) string {
	v, err := s.Get(context.Background(), table, []byte(partition), sort, nil)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%q", v)
}

// newest expresses the outcome of Newest as text: sort key and value, or the error.
func newest(s kv.Store, table *kv.Table, partition string, at uint64) string {
	v, sort, err := s.Newest(context.Background(), table, []byte(partition), at, nil)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d=%q", sort, v)
}

// descend expresses up to most rows of a Descend as text.
func descend(t testing.TB, s kv.Store, table *kv.Table, partition string, at uint64, most int) (out string) {
	t.Helper()
	err := s.Descend(context.Background(), table, []byte(partition), at, func(sort uint64, value []byte) (bool, error) {
		out += fmt.Sprintf("%d=%q ", sort, value)
		most--
		return most == 0, nil
	})
	if err != nil {
		t.Errorf("descend %s %q from %d: %v", table.Name, partition, at, err)
	}
	return out
}

// scan expresses a whole scan as text.
func scan(t testing.TB, s kv.Store, table *kv.Table, partition string, from, to uint64) string {
	t.Helper()
	c := s.Scan(context.Background(), table, []byte(partition), from, to)
	out := ""
	for ok := c.Next(); ok; ok = c.Next() {
		out += fmt.Sprintf("%d=%q ", c.Sort(), c.Value())
	}
	if err := c.Close(); err != nil {
		t.Errorf("scan %s %q [%d, %d]: %v", table.Name, partition, from, to, err)
	}
	return out
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, expected %s", what, got, want)
	}
}

var notFound = kv.ErrNotFound.Error()

func key(partition string, sort uint64) kv.Key {
	return kv.Key{Partition: []byte(partition), Sort: sort}
}
