package cassandra_test

import (
	"encoding/binary"
	"testing"

	"ashlar/kv/cassandra"
)

// TestWalkReadsAhead: a walk that ends after a page has read few others, so a removal that
// walks in slices does not read the table many times.
func TestWalkReadsAhead(t *testing.T) {
	const (
		pageRows = 1024
		pages    = 12
		most     = 7 // statements for two pages, with what is read ahead and the renewal of the lease
	)
	config := configure(t, "walks")
	config.SplitBytes = 0 // the default
	counted := new(attempts)
	counted.observe(&config, "")
	s := open(t, connect(t, config), newName(t), cassandra.Options{})
	b := s.NewBatch()
	for i := range uint64(pages * pageRows) {
		b.Put(versions, binary.BigEndian.AppendUint64(nil, i), 1, []byte("value"))
	}
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	walk := func(after []byte, rows int) (seen int, last []byte) {
		t.Helper()
		counted.reset()
		for row, err := range s.WalkAfter(t.Context(), versions, after, 0) {
			if err != nil {
				t.Fatal(err)
			}
			last = append(last[:0], row.Partition...)
			if seen++; seen == rows {
				break
			}
		}
		return seen, last
	}
	_, last := walk(nil, pageRows+1)
	if n := counted.total(); n > most {
		t.Errorf("%d statements for the first rows, want %d at most", n, most)
	}
	if seen, _ := walk(last, 0); seen != (pages-1)*pageRows-1 {
		t.Errorf("%d rows after the first ones, want %d", seen, (pages-1)*pageRows-1)
	}
	t.Logf("%d statements for the other rows", counted.total())
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
