package window

import (
	"bytes"
	"context"
	"slices"

	"ashlar/evm/archive"
	"ashlar/kv"
)

const (
	// fewRows of a partition are removed one by one, more as a range. Where each removal is a
	// statement of its own, two are a range.
	fewRows = 32
	// checkEvery is the number of rows after which the work may rest within a slice.
	checkEvery = 512
)

// sweep removes the versions in a table that are older than the state of a block needs, or
// the rows of the trace index of the blocks up to it. It works in slices, so that no view of
// the store is held for long. A store that is written piecewise has no views: there the whole
// table is one slice, since each walk begins with a page of many rows. Slices that end before
// their first page is used would read it again for every partition.
func (r *Remover) sweep(ctx context.Context, t *kv.Table, state uint64) error {
	s := &slice{work: r.work(), table: t, state: state, keepNewest: t != archive.NamedTables().TracePostings}
	r.Progress.Begin(t.Name, 1<<16)
	for done := false; !done; {
		var err error
		if done, err = s.run(ctx); err != nil {
			return err
		}
		if done {
			s.removeHeld()
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
		if err := s.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// slice is a part of a sweep:
//
//	partitions   a   b   c   d   e   f
//	slice        1111111111  222222222
//
// A walk cannot continue after a partition without rows. So a partition that loses all of its
// rows is held until the next one is done, which may be in the next slice. Without that, a
// slice would begin with all partitions that the one before it has emptied.
type slice struct {
	*work
	table      *kv.Table
	state      uint64
	keepNewest bool // the newest row at or below state

	after []byte // last partition that is done; nil: none
	held  *oldRows
	old   oldRows
}

// oldRows are the rows of a partition at or below the state.
type oldRows struct {
	partition []byte
	later     bool // there are rows above the state

	count  uint64
	newest uint64
	gone   bool     // the newest is a deletion
	needs  int      // rows that the newest one is a difference from and that were not seen
	keep   uint64   // oldest row that stays, if the newest one does
	below  uint64   // number of rows below keep
	sorts  []uint64 // of these rows, the first fewRows
}

// run walks over partitions until the work is tired, or returns true at the end.
func (s *slice) run(ctx context.Context) (done bool, err error) {
	any, unchecked := false, 0
	for row, err := range s.remover.store.WalkAfter(ctx, s.table, s.after, 0) {
		if err != nil {
			return false, err
		}
		if !any || !bytes.Equal(s.old.partition, row.Partition) {
			if any {
				if err := s.trim(ctx); err != nil {
					return false, err
				}
				if s.tired() && !s.piecewise {
					return false, nil
				}
			}
			any = true
			s.old = oldRows{partition: append(s.old.partition[:0], row.Partition...), sorts: s.old.sorts[:0]}
		}
		if unchecked++; unchecked == checkEvery {
			unchecked = 0
			if s.tired() {
				if err := s.rest(ctx); err != nil {
					return false, err
				}
			}
		}
		if err := s.add(row); err != nil {
			return false, err
		}
		s.remover.Progress.Read(1)
		s.remover.Progress.Walked(row.Walked)
	}
	if !any {
		return true, nil
	}
	return true, s.trim(ctx)
}

// add adds a row of the partition. The newest comes first.
func (s *slice) add(row kv.Row) (err error) {
	o := &s.old
	if row.Sort > s.state {
		o.later = true
		return nil
	}
	steps := 0
	if s.table == archive.NamedTables().TrieNodes && (o.count == 0 || o.needs > 0) {
		if steps, err = archive.NodeSteps(row.Value); err != nil {
			return err
		}
	}
	o.count++
	switch {
	case o.count == 1:
		o.newest, o.keep, o.gone, o.needs = row.Sort, row.Sort, len(row.Value) == 0, steps
	case o.needs > 0 && s.piecewise:
		o.keep = row.Sort
		if o.needs--; steps == 0 {
			o.needs = 0
		}
	default:
		if o.below++; o.below <= fewRows {
			o.sorts = append(o.sorts, row.Sort)
		}
	}
	return nil
}

// trim removes the rows of a partition that are not needed.
func (s *slice) trim(ctx context.Context) error {
	s.removeHeld()
	o := &s.old
	s.after = append(s.after[:0], o.partition...)
	switch {
	case o.count == 0:
		return nil
	case !s.keepNewest || o.gone:
		o.empty()
		if !o.later {
			s.held = &oldRows{partition: bytes.Clone(o.partition), keep: o.keep, below: o.below, sorts: slices.Clone(o.sorts)}
		}
	case o.needs > 0 && o.below > 0 && !s.piecewise:
		whole, err := archive.WholeNode(ctx, s.remover.store, o.partition, o.newest)
		if err != nil {
			return err
		}
		s.batch.Put(s.table, o.partition, o.newest, whole)
	}
	if s.held == nil {
		s.removeBelow(o)
	}
	if s.full() {
		return s.flush(ctx)
	}
	return nil
}

// empty makes all rows those that are not needed.
func (o *oldRows) empty() {
	o.keep, o.below = o.newest+1, o.count
	o.sorts = append(o.sorts, o.newest)
}

// removeHeld removes the rows of the partition that is held.
func (s *slice) removeHeld() {
	if s.held != nil {
		s.removeBelow(s.held)
		s.held = nil
	}
}

// removeBelow removes the rows of a partition that are not needed.
func (s *slice) removeBelow(o *oldRows) {
	if o.below > fewRows || s.piecewise && o.below > 1 {
		s.batch.DeleteRange(s.table, o.partition, 0, o.keep-1)
	} else {
		for _, sort := range o.sorts {
			s.batch.Delete(s.table, o.partition, sort)
		}
	}
	s.remover.removed.Add(o.below)
}
