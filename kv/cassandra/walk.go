package cassandra

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// Walk implements kv.Store. Partitions come in the order of their tokens; within one, rows
// ascend in List tables and descend in Versions tables. A table has the rows of all stores,
// so the walk reads those of the others too. Rows that are written meanwhile may be seen.
func (s *Store) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return s.WalkAfter(ctx, t, nil, from)
}

// WalkAfter implements kv.Store.
func (s *Store) WalkAfter(ctx context.Context, t *kv.Table, after []byte, from uint64) iter.Seq2[kv.Row, error] {
	return s.walkAfter(ctx, s.byQuorum(), t, after, from)
}

// replicasPatience is how long a node may be away while all are read. It may be restarted then.
const replicasPatience = time.Minute

// WalkReplicas implements kv.Replicated.
func (s *Store) WalkReplicas(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	return s.walkAfter(ctx, reading{gocql.All, replicasPatience}, t, nil, from)
}

func (s *Store) walkAfter(ctx context.Context, how reading, t *kv.Table, after []byte, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		if err := s.walk(ctx, how, t, after, from, yield); err != nil {
			yield(kv.Row{}, err)
		}
	}
}

func (s *Store) walk(ctx context.Context, how reading, t *kv.Table, after []byte, from uint64, yield func(kv.Row, error) bool) error {
	st, err := s.prepare(ctx, t, after)
	if err != nil {
		return err
	}
	first := int64(math.MinInt64)
	if after != nil {
		token, err := s.tokenOf(ctx, st, after)
		if err != nil {
			return fmt.Errorf("kv/cassandra: walk table %s after partition %x: %w", t.Name, after, err)
		}
		if token == math.MaxInt64 {
			return nil
		}
		first = token + 1
	}
	w := walker{store: s, how: how, table: t, from: from, statements: st, yield: yield}
	w.pageRows.Store(maxPage)
	err = w.run(ctx, first)
	if w.stopped {
		return nil // even if something failed afterwards: yield must not be called again
	}
	return s.orNoTable(ctx, st, err)
}

// tokenOf returns the token of part 0 of a partition, or kv.ErrNotFound.
func (s *Store) tokenOf(ctx context.Context, st *statements, partition []byte) (token int64, err error) {
	err = s.cluster.scan(ctx, s.query(st.token, s.id, notNil(partition), 0), &token)
	if errors.Is(err, errNoTable) {
		err = kv.ErrNotFound
	}
	return token, err
}

// walker reads a table by ranges of tokens. Several ranges are read ahead side by side, and
// yielded in their order:
//
//	yielded | being yielded | read ahead, a page each   | not begun
//	........|  range  page  | range | range | ... range |
//
// Their number doubles with each range, so that a walk that soon ends has read little ahead.
// A range is about as wide as a page; a range with more rows than one page is read on when
// it is yielded. So the memory is bounded whatever the rows are.
type walker struct {
	store      *Store
	how        reading
	table      *kv.Table
	statements *statements
	from       uint64 // least sort key
	yield      func(kv.Row, error) bool
	pageRows   atomic.Int64 // of the next page

	partition []byte // of the last row of part 0
	inside    bool   // there was such a row
	split     bool   // that partition has other parts
	walked    float64
	stopped   bool
}

const (
	walkAhead = 16      // ranges read ahead of the one that is yielded, at most
	leastWide = 1 << 40 // tokens of a range, at least
)

// tokens is a range of tokens.
type tokens struct{ from, to int64 }

// walkRow is a row as a walk reads it.
type walkRow struct {
	store int
	p     []byte
	i     int
	sort  *int64 // nil in a part that has no rows
	value *[]byte
	until *int64
	token int64
}

// walkPage is a page of a range.
type walkPage struct {
	tokens
	rows []walkRow
	next []byte // state of the next page of the range; empty: there is none
	err  error
}

// run yields all rows from a token on, until it is stopped.
func (w *walker) run(ctx context.Context, first int64) error {
	page := w.read(ctx, tokens{first, math.MaxInt64}, nil)
	if page.err != nil {
		return page.err
	}
	if len(page.next) == 0 {
		if err := w.rows(ctx, page.rows); err != nil || w.stopped {
			return err
		}
		return w.leave(ctx)
	}
	wide := uint64(leastWide)
	if n := len(page.rows); n > 0 { // rows of the last token are read again, with those after the page
		last := page.rows[n-1].token
		wide = max(wide, uint64(last)-uint64(first))
		for n > 0 && page.rows[n-1].token == last {
			n--
		}
		if err := w.rows(ctx, page.rows[:n]); err != nil || w.stopped {
			return err
		}
		first = last
	}
	if err := w.ranges(ctx, first, wide); err != nil || w.stopped {
		return err
	}
	return w.leave(ctx)
}

// ranges yields the rows of all ranges from a token on. wide is the width of the first.
func (w *walker) ranges(ctx context.Context, first int64, wide uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	var ahead []chan walkPage
	begun := false // the last range
	for most := 1; ; most = min(2*most, walkAhead) {
		for !begun && len(ahead) <= most {
			r := tokens{first, math.MaxInt64}
			if left := uint64(r.to) - uint64(r.from); left > wide {
				r.to = int64(uint64(first) + wide)
			}
			begun = r.to == math.MaxInt64
			first = r.to + 1
			read := make(chan walkPage, 1)
			ahead = append(ahead, read)
			readers.Go(func() { read <- w.read(ctx, r, nil) })
		}
		if len(ahead) == 0 {
			return nil
		}
		page := <-ahead[0]
		ahead = ahead[1:]
		switch {
		case len(page.next) > 0:
			wide = max(wide/2, leastWide)
		case len(page.rows) < maxPage/2 && wide < 1<<62:
			wide *= 2
		}
		for {
			if page.err != nil {
				return page.err
			}
			if err := w.rows(ctx, page.rows); err != nil || w.stopped {
				return err
			}
			if len(page.next) == 0 {
				break
			}
			page = w.read(ctx, page.tokens, page.next)
		}
	}
}

// read reads a page of a range. Large rows make the next pages shorter.
func (w *walker) read(ctx context.Context, r tokens, state []byte) walkPage {
	page := walkPage{tokens: r}
	limit, size := w.pageRows.Load(), 0
	page.err = w.store.cluster.retry(ctx, w.how.patience, func(ctx context.Context) error {
		page.rows, size = page.rows[:0], 0
		query := w.store.cluster.session.Query(w.statements.walk, r.from, r.to).Consistency(w.how.level)
		read := query.PageSize(int(limit)).PageState(state).Prefetch(0).IterContext(ctx)
		page.next = read.PageState()
		for n := read.NumRows(); n > 0; n-- {
			var row walkRow
			if !read.Scan(&row.store, &row.p, &row.i, &row.sort, &row.value, &row.until, &row.token) {
				break
			}
			if row.value != nil {
				size += len(*row.value)
			}
			page.rows = append(page.rows, row)
		}
		return read.Close()
	})
	if size > pageBytes {
		w.pageRows.CompareAndSwap(limit, max(limit/2, 1))
	} else if size < pageBytes/4 && limit < maxPage {
		w.pageRows.CompareAndSwap(limit, min(2*limit, maxPage))
	}
	return page
}

// rows yields rows that were read.
func (w *walker) rows(ctx context.Context, rows []walkRow) error {
	for i := range rows {
		if rows[i].store == w.store.id && rows[i].i == 0 && rows[i].sort != nil {
			if err := w.row(ctx, &rows[i]); err != nil || w.stopped {
				return err
			}
		}
	}
	return w.store.begin(ctx)
}

// row yields a row of part 0. The other parts of its partition come before the first one
// in a table of versions, and after the last one in a list.
func (w *walker) row(ctx context.Context, r *walkRow) error {
	w.walked = float64(uint64(r.token)^1<<63) / (1 << 64)
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
		w.stopped = !w.yield(kv.Row{Partition: w.partition, Sort: sort, Value: *r.value, Walked: w.walked}, nil)
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
		c := w.store.scan(ctx, w.how, w.table, w.partition, max(starts[0], w.from), ^uint64(0))
		for !w.stopped && c.Next() {
			w.stopped = !w.yield(kv.Row{Partition: w.partition, Sort: c.Sort(), Value: c.Value(), Walked: w.walked}, nil)
		}
		return c.Close()
	}
	return w.store.descend(ctx, w.how, w.table, w.partition, ^uint64(0), func(sort uint64, value []byte) (bool, error) {
		if sort < starts[0] || sort < w.from {
			return true, nil
		}
		w.stopped = !w.yield(kv.Row{Partition: w.partition, Sort: sort, Value: value, Walked: w.walked}, nil)
		return w.stopped, nil
	})
}
