package cassandra

import (
	"bytes"
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
