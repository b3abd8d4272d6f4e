package cassandra

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"testing"

	"ashlar/kv"
)

// What a batch has had is unchanged when the batch is used again: an attempt at another node, which Write does not wait
// for, may send it later.
func TestResetLeavesRows(t *testing.T) {
	table := &kv.Table{ID: 0xfd, Name: "batch_versions", Kind: kv.Versions}
	b := new(batch)
	b.Put(table, []byte("partition"), 1, []byte("value"))
	b.Delete(table, []byte("removed"), 1)
	b.SetPointer("name", []byte("pointer"))
	before := map[string][]byte{
		"partition": b.rows[0].partition, "value": b.rows[0].value, "removed": b.removals[0].partition, "pointer": b.pointers[0].value,
	}
	b.Reset()
	for range 10 {
		b.Put(table, []byte("another partition"), 2, []byte("another value"))
	}
	for want, got := range before {
		if !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q after a reset, expected %q", got, want)
		}
	}
}

// A batch allocates little more than its rows have, however it is filled, and a small one little.
func TestBatchMemory(t *testing.T) {
	table := &kv.Table{ID: 0xfd, Name: "batch_versions", Kind: kv.Versions}
	// The least of some attempts: other goroutines of the process, the runtime's among them, allocate beside one.
	allocated := func(fill func()) uint64 {
		least := uint64(math.MaxUint64)
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			fill()
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	if got := allocated(func() { new(batch).SetPointer("head", []byte("value")) }); got > 1<<10 {
		t.Errorf("a batch of one pointer allocates %d bytes", got)
	}
	const full = 4 << 20
	for _, size := range []int{0, 100, 5000, lastChunk / 8, lastChunk/8 + 1, lastChunk - 1, lastChunk + 1} {
		b, value := new(batch), make([]byte, size)
		fill := func() {
			b.Reset()
			for n := range uint64(full / (size + 32)) {
				b.Put(table, []byte("a partition of 32 bytes, or so ."), n, value)
			}
		}
		fill() // which also grows what has the rows
		if got := allocated(fill); got > full*5/4 {
			t.Errorf("rows of %d bytes: filled again, %d bytes allocate %d", size, full, got)
		}
	}
	b := new(batch)
	for n := range 2000 {
		value := fmt.Appendf(nil, "value %d", n)
		b.Put(table, nil, uint64(n), value)
		clear(value)
	}
	for n := range b.rows {
		if want := fmt.Sprintf("value %d", n); b.rows[n].partition == nil || string(b.rows[n].value) != want {
			t.Errorf("row %d: %q in partition %#v, expected %q", n, b.rows[n].value, b.rows[n].partition, want)
		}
	}
}
