package cassandra

import (
	"context"
	"iter"

	"ashlar/kv"
)

// Walk implements kv.Store. Partitions come in the order of their tokens; within one, rows
// ascend in List tables and descend in Versions tables. A table has the rows of all stores,
// so the walk reads those of the others too. Rows that are written meanwhile may be seen.
func (s *Store) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		if err := s.walk(ctx, t, from, yield); err != nil {
			yield(kv.Row{}, err)
		}
	}
}

func (s *Store) walk(ctx context.Context, t *kv.Table, from uint64, yield func(kv.Row, error) bool) error {
	st, err := s.prepare(ctx, t, nil)
	if err != nil {
		return err
	}
	w := walker{store: s, table: t, from: from, statements: st, yield: yield}
	err = w.run(ctx)
	if w.stopped {
		return nil // even if something failed afterwards: yield must not be called again
	}
	return s.orNoTable(ctx, st, err)
}

// walker reads a table page by page.
type walker struct {
	store      *Store
	table      *kv.Table
	statements *statements
	from       uint64 // least sort key
	yield      func(kv.Row, error) bool

	state     []byte // of the next page
	partition []byte // of the last row of part 0
	inside    bool   // there was such a row
	split     bool   // that partition has other parts
	stopped   bool
}

// walkRow is a row as a walk reads it.
type walkRow struct {
	store int
	p     []byte
	i     int
	sort  *int64 // nil in a part that has no rows
	value *[]byte
	until *int64
}

// run yields all rows, until it is stopped.
func (w *walker) run(ctx context.Context) error {
	for {
		more, err := w.page(ctx)
		if err != nil || w.stopped {
			return err
		}
		if !more {
			return w.leave(ctx)
		}
	}
}

// page reads one page, yields its rows, and says whether there are more pages.
func (w *walker) page(ctx context.Context) (more bool, err error) {
	var rows []walkRow
	var next []byte
	err = w.store.cluster.retry(ctx, readPatience, func(ctx context.Context) error {
		rows = rows[:0]
		read := w.store.cluster.session.Query(w.statements.walk).PageSize(maxPage).PageState(w.state).Prefetch(0).IterContext(ctx)
		next = read.PageState()
		for n := read.NumRows(); n > 0; n-- {
			var r walkRow
			if !read.Scan(&r.store, &r.p, &r.i, &r.sort, &r.value, &r.until) {
				break
			}
			rows = append(rows, r)
		}
		return read.Close()
	})
	if err != nil {
		return false, err
	}
	for i := range rows {
		if rows[i].store == w.store.id && rows[i].i == 0 && rows[i].sort != nil {
			if err := w.row(ctx, &rows[i]); err != nil || w.stopped {
				return false, err
			}
		}
	}
	if err := w.store.begin(ctx); err != nil {
		return false, err
	}
	w.state = next
	return len(next) > 0, nil
}

// row yields a row of part 0. The other parts of its partition come before the first one
// in a table of versions, and after the last one in a list.
func (w *walker) row(ctx context.Context, r *walkRow) error {
	if !w.inside || string(w.partition) != string(r.p) {
		if err := w.leave(ctx); err != nil || w.stopped {
			return err
		}
		w.partition, w.inside, w.split = append(w.partition[:0], r.p...), true, r.until != nil
		if w.split && w.table.Kind == kv.Versions {
			if err := w.parts(ctx); err != nil || w.stopped {
				return err
			}
		}
	}
	if sort := sortOf(*r.sort); r.value != nil && sort >= w.from {
		w.stopped = !w.yield(kv.Row{Partition: w.partition, Sort: sort, Value: *r.value}, nil)
	}
	return nil
}

// leave ends a partition.
func (w *walker) leave(ctx context.Context) error {
	if !w.inside || !w.split || w.table.Kind == kv.Versions {
		return nil
	}
	w.inside = false
	return w.parts(ctx)
}

// parts yields the rows of all parts of the partition but part 0.
func (w *walker) parts(ctx context.Context) error {
	starts, err := w.store.partsOf(ctx, w.table, w.partition)
	if err != nil || len(starts) == 0 {
		return err
	}
	if w.table.Kind == kv.List {
		c := w.store.Scan(ctx, w.table, w.partition, max(starts[0], w.from), ^uint64(0))
		for !w.stopped && c.Next() {
			w.stopped = !w.yield(kv.Row{Partition: w.partition, Sort: c.Sort(), Value: c.Value()}, nil)
		}
		return c.Close()
	}
	return w.store.Descend(ctx, w.table, w.partition, ^uint64(0), func(sort uint64, value []byte) (bool, error) {
		if sort < starts[0] || sort < w.from {
			return true, nil
		}
		w.stopped = !w.yield(kv.Row{Partition: w.partition, Sort: sort, Value: value}, nil)
		return w.stopped, nil
	})
}
