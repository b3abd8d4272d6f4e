package cassandra_test

import (
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"ashlar/kv"
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

// TestScanReadsPages reads a long partition: each page comes with one statement, and is not cut in two.
func TestScanReadsPages(t *testing.T) {
	const rows = 3000
	pages := []int{64, 128, 256, 512, 1024, 1016}
	config := configure(t, "walks")
	config.SplitBytes = 0 // the default
	var mu sync.Mutex
	var read []int // by attempts; on a busy machine a page may have two
	config.ObserveRows(func(statement string, rows int) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(statement, "SELECT s, v") && rows > 0 && !slices.Contains(read, rows) {
			read = append(read, rows)
		}
	})
	s := open(t, connect(t, config), newName(t), cassandra.Options{})
	defer s.Close()
	b := s.NewBatch()
	for i := range uint64(rows) {
		b.Put(list, []byte("p"), i, []byte("value"))
	}
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c := s.Scan(t.Context(), list, []byte("p"), 0, rows)
	seen := 0
	for c.Next() {
		seen++
	}
	if err := c.Close(); err != nil || seen != rows {
		t.Errorf("%d rows, %v, expected %d", seen, err, rows)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(read, pages) {
		t.Errorf("statements return %d rows, expected %d", read, pages)
	}
}

// TestWalkReplicas walks over rows that one of three nodes has, as a write leaves them that was cut off: all are yielded.
func TestWalkReplicas(t *testing.T) {
	config := configure(t, fmt.Sprintf("unrepaired_%d", os.Getpid()))
	config.Replication = 1
	c := connect(t, config)
	s := open(t, c, newName(t), cassandra.Options{})
	defer s.Close()
	const wide, narrow = 40, 60
	for _, table := range []*kv.Table{versions, list} {
		for n := range uint64(wide) {
			put(t, s, table, "wide", n, fmt.Sprint("value ", n))
		}
		for n := range uint64(narrow) {
			put(t, s, table, fmt.Sprint("narrow ", n), n, "value")
		}
	}
	s.Pause() // the lease is at one node, too
	more := fmt.Sprintf("ALTER KEYSPACE %s WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3}", config.Keyspace)
	if err := c.Define(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if err := c.Repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := func(rows iter.Seq2[kv.Row, error]) (n int) {
		for _, err := range rows {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	for _, table := range []*kv.Table{versions, list} {
		if n := count(s.WalkReplicas(t.Context(), table, 0)); n != wide+narrow {
			t.Errorf("%s: %d rows, expected %d", table.Name, n, wide+narrow)
		}
	}
	if err := c.Define(t.Context(), "DROP KEYSPACE IF EXISTS "+config.Keyspace); err != nil {
		t.Error(err)
	}
}
