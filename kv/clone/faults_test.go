package clone

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"testing"

	"ashlar/kv"
)

// TestFalsified: a copy with as many rows as the original, of which one is another, is refused.
func TestFalsified(t *testing.T) {
	from := original(t)
	for name, falsify := range map[string]func(r kv.Row) kv.Row{
		"value":    func(r kv.Row) kv.Row { return kv.Row{Partition: r.Partition, Sort: r.Sort, Value: append(r.Value, 0)} },
		"sort key": func(r kv.Row) kv.Row { return kv.Row{Partition: r.Partition, Sort: r.Sort + 1<<32, Value: r.Value} },
		"partition": func(r kv.Row) kv.Row {
			return kv.Row{Partition: bytes.Repeat([]byte{0xee}, len(r.Partition)), Sort: r.Sort, Value: r.Value}
		},
		"longer partition": func(r kv.Row) kv.Row {
			return kv.Row{Partition: append(r.Partition, r.Value[0]), Sort: r.Sort, Value: r.Value[1:]}
		},
	} {
		for _, table := range tables()[:2] {
			t.Run(name+" in "+table.Name, func(t *testing.T) {
				to := &falsifier{Store: open(t), table: table, falsify: falsify}
				if _, err := Run(t.Context(), from, to, Options{Tables: tables()}); !errors.Is(err, ErrDiffers) {
					t.Errorf("%v, expected ErrDiffers", err)
				}
				if complete, err := Complete(t.Context(), from, to); complete || err != nil {
					t.Errorf("Complete: %t, %v", complete, err)
				}
			})
		}
	}
}

// falsifier is a store in which one row of a table becomes another.
type falsifier struct {
	kv.Store
	table   *kv.Table
	falsify func(kv.Row) kv.Row
	done    bool
}

func (f *falsifier) NewBatch() kv.Batch { return falsifiedBatch{f.Store.NewBatch(), f} }

func (f *falsifier) Write(ctx context.Context, b kv.Batch) error {
	return f.Store.Write(ctx, b.(falsifiedBatch).Batch)
}

type falsifiedBatch struct {
	kv.Batch
	*falsifier
}

func (b falsifiedBatch) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	if t == b.table && !b.done && len(partition) > 1 && len(value) > 0 {
		row := b.falsify(kv.Row{Partition: bytes.Clone(partition), Sort: sort, Value: bytes.Clone(value)})
		partition, sort, value, b.done = row.Partition, row.Sort, row.Value, true
	}
	b.Batch.Put(t, partition, sort, value)
}

// source is a store whose reads have faults.
type source struct {
	kv.Store
	walked func() error              // called with each row; nil: nothing
	scan   func(kv.Cursor) kv.Cursor // nil: as the store
}

// WalkAfter yields rows whose memory holds something else afterwards, as an engine may do.
func (s *source) WalkAfter(ctx context.Context, t *kv.Table, after []byte, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range s.Store.WalkAfter(ctx, t, after, from) {
			if s.walked != nil && err == nil {
				err = s.walked()
			}
			row.Partition, row.Value = bytes.Clone(row.Partition), bytes.Clone(row.Value)
			if !yield(row, err) {
				return
			}
			for _, memory := range [][]byte{row.Partition, row.Value} {
				for i := range memory {
					memory[i] = 0xff
				}
			}
		}
	}
}

func (s *source) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	rows := s.Store.Scan(ctx, t, partition, from, to)
	if s.scan != nil {
		rows = s.scan(rows)
	}
	return rows
}

// TestReusedMemory: the rows of a walk are valid for one step only.
func TestReusedMemory(t *testing.T) {
	from, to := original(t), open(t)
	if _, err := Run(t.Context(), &source{Store: from}, to, Options{Tables: tables()}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(contents(t, from), contents(t, to)) {
		t.Error("the copy has other contents")
	}
}

// TestChangedMeanwhile: an original that changes while it is copied, and not before, is noticed.
func TestChangedMeanwhile(t *testing.T) {
	from, to := original(t), open(t)
	changed := false
	changing := &source{Store: from, walked: func() error {
		if !changed {
			set(t, from, "head", "13")
		}
		changed = true
		return nil
	}}
	if _, err := Run(t.Context(), changing, to, Options{Tables: tables()}); !errors.Is(err, ErrChanged) {
		t.Errorf("%v, expected ErrChanged", err)
	}
	if complete, err := Complete(t.Context(), from, to); complete || err != nil {
		t.Errorf("Complete: %t, %v", complete, err)
	}
}

// cut is a cursor that fails after some rows.
type cut struct {
	kv.Cursor
	left int
}

var errCut = errors.New("cut short")

func (c *cut) Next() bool {
	c.left--
	return c.left >= 0 && c.Cursor.Next()
}

func (c *cut) Close() error { return errors.Join(errCut, c.Cursor.Close()) }

// TestFailedWalk: a table that cannot be read to its end is not taken for a shorter one.
func TestFailedWalk(t *testing.T) {
	from := original(t)
	for rows := range 3 {
		left := 900 * rows
		failing := &source{Store: from, walked: func() error {
			if left--; left < 0 {
				return errCut
			}
			return nil
		}}
		if _, err := Run(t.Context(), failing, open(t), Options{Tables: tables()}); !errors.Is(err, errCut) {
			t.Errorf("%d rows could be read: %v, expected %v", 900*rows, err, errCut)
		}
	}
}

// TestFailedScan: a partition that cannot be read to its end is not taken for a shorter one.
func TestFailedScan(t *testing.T) {
	from := open(t)
	for sort := range uint64(24) {
		b := from.NewBatch()
		b.Put(versions, []byte("large"), sort, bytes.Repeat([]byte{byte(sort)}, 1<<20))
		if err := from.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	set(t, from, "head", "1")
	failing := &source{Store: from, scan: func(c kv.Cursor) kv.Cursor { return &cut{c, 10} }}
	if _, err := Run(t.Context(), failing, open(t), Options{Tables: tables()}); !errors.Is(err, errCut) {
		t.Errorf("%v, expected %v", err, errCut)
	}
}
