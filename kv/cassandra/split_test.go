package cassandra_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/kv/cassandra"
)

// TestSplit writes a partition of many parts and reads it by a store that knows the parts,
// by one that was opened before them, and by a new one.
func TestSplit(t *testing.T) {
	const rows, step = 80, 10
	c := connect(t, configure(t, "contract"))
	name := newName(t)
	writer := open(t, c, name, cassandra.Options{})
	defer writer.Close()
	reader := func() *cassandra.Store {
		s, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := reader()
	defer before.Close()
	for _, table := range []*kv.Table{versions, list} {
		for n := range uint64(rows) {
			put(t, writer, table, "wide", (n+1)*step, fmt.Sprint("value ", n+1))
			if n%7 == 0 { // what is written last is seen at once, whatever is known of the parts
				checkNewest(t, before, table, (n+1)*step, n+1)
			}
		}
		put(t, writer, table, "wide", 3*step+1, "between") // in an early part
		checkRemoved(t, writer, before, table, rows, step)
		parts, err := before.Parts(t.Context(), table, []byte("wide"))
		if err != nil || parts < 3 {
			t.Fatalf("%d parts, %v, expected several", parts, err)
		}
		for what, s := range map[string]*cassandra.Store{"writer": writer, "reader": before, "new reader": reader()} {
			t.Run(fmt.Sprint(table.Name, " ", what), func(t *testing.T) { checkWide(t, s, table, rows, step) })
		}
	}
}

// checkRemoved removes the rows of the first parts, and puts them again.
func checkRemoved(t *testing.T, writer, reader kv.Store, table *kv.Table, rows, step uint64) {
	t.Helper()
	b := writer.NewBatch()
	b.DeleteRange(table, []byte("wide"), 0, (rows-1)*step)
	if err := writer.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []kv.Store{writer, reader} {
		checkNewest(t, s, table, rows*step, rows)
		if _, _, err := s.Newest(t.Context(), table, []byte("wide"), rows*step-1, nil); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("Newest of removed rows: %v, expected ErrNotFound", err)
		}
		c := s.Scan(t.Context(), table, []byte("wide"), 0, ^uint64(0))
		if !c.Next() || c.Sort() != rows*step || c.Next() || c.Close() != nil {
			t.Errorf("Scan after a removal: at %d, %v, expected the last row alone", c.Sort(), c.Close())
		}
	}
	for n := range rows - 1 {
		b.Reset()
		b.Put(table, []byte("wide"), (n+1)*step, []byte(fmt.Sprint("value ", n+1)))
		if n+1 == 3 {
			b.Put(table, []byte("wide"), 3*step+1, []byte("between"))
		}
		if err := writer.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRemovedPart has a reader that knows the first parts of a partition. Then others begin, and the rows of the last
// part that it knows are removed, as a window does. The reader must find the rows after them.
func TestRemovedPart(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	name := newName(t)
	writer := open(t, c, name, cassandra.Options{})
	defer writer.Close()
	reader, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	parts := func() int {
		parts, err := writer.Parts(t.Context(), versions, []byte("wide"))
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	n, known := uint64(0), uint64(0)
	for ; parts() < 4; n++ {
		if known == 0 && parts() == 2 {
			known = n
			checkNewest(t, reader, versions, n-1, n-1) // which reads where the parts are
		}
		put(t, writer, versions, "wide", n, fmt.Sprint("value ", n))
	}
	b := writer.NewBatch()
	b.DeleteRange(versions, []byte("wide"), 0, n-2)
	if err := writer.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]kv.Reader{"writer": writer, "reader": reader} {
		checkNewest(t, s, versions, n+5, n-1)
		var got []uint64
		err := s.Descend(t.Context(), versions, []byte("wide"), n+5, func(sort uint64, _ []byte) (bool, error) {
			got = append(got, sort)
			return false, nil
		})
		if err != nil || !slices.Equal(got, []uint64{n - 1}) {
			t.Errorf("%s: Descend: rows %d, %v, expected %d alone", what, got, err, n-1)
		}
	}
}

// TestRemovalCutOff ends a removal of the first parts of a partition after the rows of one, as a crash does. A reader that
// does not know the parts must find the rows that stay, and a walk too.
func TestRemovalCutOff(t *testing.T) {
	config := configure(t, "contract")
	removing, crash := context.WithCancel(t.Context())
	defer crash()
	config.ObserveStatements(func(_ context.Context, statement string) {
		if strings.HasPrefix(statement, "DELETE FROM "+versions.Name) {
			crash()
		}
	})
	c := connect(t, config)
	name := newName(t)
	writer := open(t, c, name, cassandra.Options{})
	defer writer.Close()
	n := uint64(0)
	for parts := 1; parts < 4; n++ {
		put(t, writer, versions, "wide", n, fmt.Sprint("value ", n))
		var err error
		if parts, err = writer.Parts(t.Context(), versions, []byte("wide")); err != nil {
			t.Fatal(err)
		}
	}
	b := writer.NewBatch()
	b.DeleteRange(versions, []byte("wide"), 0, n-2)
	if err := writer.Write(removing, b); !errors.Is(err, context.Canceled) {
		t.Fatalf("the removal: %v, expected that it is cut off", err)
	}
	reader, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	checkNewest(t, reader, versions, n, n-1)
	found := false
	for row, err := range writer.Walk(t.Context(), versions, n-1) {
		if err != nil {
			t.Fatal(err)
		}
		found = found || row.Sort == n-1
	}
	if !found {
		t.Error("a walk does not find the row that stays")
	}
}

// TestSplitBesideWrite has a partition split while another Write is about to put a later row into it. The row must be
// found.
func TestSplitBesideWrite(t *testing.T) {
	const (
		before = 21  // rows of 28 bytes; two more make a part of splitBytes
		first  = 128 // rows that are written at once
	)
	type slow struct{}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var begin sync.Once
	config := configure(t, "contract")
	config.ObserveStatements(func(ctx context.Context, statement string) {
		if ctx.Value(slow{}) != nil && strings.HasPrefix(statement, "INSERT INTO "+versions.Name) {
			begin.Do(func() { close(begun) })
			<-goOn
		}
	})
	s := open(t, connect(t, config), newName(t), cassandra.Options{})
	defer s.Close()
	for n := range uint64(before) {
		put(t, s, versions, "wide", n, fmt.Sprintf("value %02d", n))
	}
	written := make(chan error, 2)
	write := func(ctx context.Context, others int, sort uint64) {
		b := s.NewBatch()
		for n := range others { // which are written before
			b.Put(versions, fmt.Appendf(nil, "a %d", n), 1, []byte("value"))
		}
		b.Put(versions, []byte("wide"), sort, fmt.Appendf(nil, "value %02d", sort))
		written <- s.Write(ctx, b)
	}
	go write(context.WithValue(t.Context(), slow{}, true), first, 50)
	<-begun
	go write(t.Context(), 0, 41)
	var failed []error
	select {
	case err := <-written:
		failed = append(failed, err)
	case <-time.After(2 * time.Second): // it waits for the other
	}
	close(goOn)
	for len(failed) < 2 {
		failed = append(failed, <-written)
	}
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	for _, sort := range []uint64{before - 1, 41, 50} {
		if value, err := s.Get(t.Context(), versions, []byte("wide"), sort, nil); err != nil || string(value) != fmt.Sprintf("value %02d", sort) {
			t.Errorf("row %d: %q, %v", sort, value, err)
		}
	}
}

// TestStatements counts the statements of look-ups, each of which waits for the one before:
// one if the parts of the partition are known, three if they are not.
func TestStatements(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	name := newName(t)
	writer := open(t, c, name, cassandra.Options{})
	defer writer.Close()
	const rows = 60
	for _, table := range []*kv.Table{versions, list} {
		for n := range uint64(rows) {
			put(t, writer, table, "wide", n, fmt.Sprint("value ", n))
		}
		put(t, writer, table, "narrow", 7, "value")
		reader := func() *cassandra.Store {
			s, err := c.Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		check := func(what string, s *cassandra.Store, want int64, read func(kv.Reader) error) {
			t.Helper()
			before := s.Stats().Reads
			err := read(s)
			if got := s.Stats().Reads - before; got != want || err != nil {
				t.Errorf("%s: %s: %d statements, %v, expected %d", table.Name, what, got, err, want)
			}
		}
		newest := func(partition string, at uint64) func(kv.Reader) error {
			return func(s kv.Reader) error {
				_, _, err := s.Newest(t.Context(), table, []byte(partition), at, nil)
				return err
			}
		}
		get := func(partition string, sort uint64) func(kv.Reader) error {
			return func(s kv.Reader) error {
				_, err := s.Get(t.Context(), table, []byte(partition), sort, nil)
				return err
			}
		}
		s := reader()
		check("newest of one part", s, 1, newest("narrow", 9))
		check("newest, parts not known", s, 3, newest("wide", rows-1))
		check("newest, parts known", s, 1, newest("wide", rows-2))
		check("row, parts known", s, 1, get("wide", rows/2))
		s = reader()
		check("row of one part", s, 1, get("narrow", 7))
		check("row, parts not known", s, 4, get("wide", rows-1)) // two of them side by side
		check("row, parts known", s, 1, get("wide", rows-2))
	}
}

// TestWalkStopped stops walks within a partition of several parts, when nothing more can be
// read.
func TestWalkStopped(t *testing.T) {
	c := connect(t, configure(t, "contract"))
	s := open(t, c, newName(t), cassandra.Options{})
	defer s.Close()
	const rows = 40
	for _, table := range []*kv.Table{versions, list} {
		for n := range uint64(rows) {
			put(t, s, table, "wide", n, fmt.Sprint("value ", n))
		}
		for stop := 1; stop <= rows; stop += 3 {
			ctx, cancel := context.WithCancel(t.Context())
			walked := 0
			for _, err := range s.Walk(ctx, table, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if walked++; walked == stop {
					cancel()
					break
				}
			}
			cancel()
			if walked != stop {
				t.Errorf("%s: walked %d rows, expected to stop at %d", table.Name, walked, stop)
			}
		}
	}
}

func checkNewest(t *testing.T, s kv.Reader, table *kv.Table, at, want uint64) {
	t.Helper()
	value, _, err := s.Newest(t.Context(), table, []byte("wide"), at, nil)
	if err != nil || string(value) != fmt.Sprint("value ", want) {
		t.Errorf("Newest at %d: %q, %v, expected value %d", at, value, err, want)
	}
}

// checkWide reads everything that TestSplit has written.
func checkWide(t *testing.T, s kv.Store, table *kv.Table, rows, step uint64) {
	sorts := []uint64{3*step + 1}
	for n := range rows {
		sorts = append(sorts, (n+1)*step)
		if n+1 != 3 {
			checkNewest(t, s, table, (n+1)*step+step-1, n+1)
		}
		value, err := s.Get(t.Context(), table, []byte("wide"), (n+1)*step, nil)
		if err != nil || string(value) != fmt.Sprint("value ", n+1) {
			t.Errorf("Get %d: %q, %v", (n+1)*step, value, err)
		}
		if _, err := s.Get(t.Context(), table, []byte("wide"), (n+1)*step+5, nil); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("Get of no row: %v", err)
		}
	}
	if _, _, err := s.Newest(t.Context(), table, []byte("wide"), step-1, nil); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("Newest below the first row: %v", err)
	}
	slices.Sort(sorts)
	for _, from := range []uint64{0, 5 * step, rows * step / 2, rows*step - 1} {
		var got []uint64
		cursor := s.Scan(t.Context(), table, []byte("wide"), from, ^uint64(0))
		for cursor.Next() {
			got = append(got, cursor.Sort())
		}
		first, _ := slices.BinarySearch(sorts, from)
		if err := cursor.Close(); err != nil || !slices.Equal(got, sorts[first:]) {
			t.Errorf("Scan from %d: %d rows, %v, expected %d", from, len(got), err, len(sorts)-first)
		}
	}
	var walked []uint64
	for row, err := range s.Walk(t.Context(), table, 0) {
		if err != nil {
			t.Fatal(err)
		}
		walked = append(walked, row.Sort)
	}
	if table.Kind == kv.Versions {
		slices.Reverse(walked)
		var got []uint64
		err := s.Descend(t.Context(), table, []byte("wide"), ^uint64(0), func(sort uint64, _ []byte) (bool, error) {
			got = append(got, sort)
			return false, nil
		})
		if slices.Reverse(got); err != nil || !slices.Equal(got, sorts) {
			t.Errorf("Descend: %d rows, %v, expected %d", len(got), err, len(sorts))
		}
	}
	if !slices.Equal(walked, sorts) {
		t.Errorf("Walk: %v, expected %v", walked, sorts)
	}
}
