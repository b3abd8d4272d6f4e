package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"ashlar/kv"

	"golang.org/x/sync/errgroup"
)

// BlockCheck checks single blocks by the rules of its family. It is for use by one
// goroutine.
type BlockCheck interface {
	// Check reads and checks a block. It puts all rows that the block must have, encoded
	// anew from what it read, and returns the number of transactions. It may be called more
	// than once for a block.
	Check(ctx context.Context, number uint64, to kv.Putter) (transactions int, err error)
	// NameOf describes a partition of a derived table in terms of the last block checked. It
	// returns an empty string if it is unknown.
	NameOf(partition []byte) string
}

// CheckBlocks checks every block of the range, and that the tables have exactly the rows
// that these blocks must have. It calls newCheck for each goroutine.
func (a *Audit) CheckBlocks(ctx context.Context, newCheck func() BlockCheck) error {
	differences, err := Compare(NewLedger(a.moments()), func(l *Ledger) error {
		if err := a.enterBlocks(ctx, l, newCheck); err != nil {
			return err
		}
		return a.enterRows(ctx, l)
	})
	if err != nil || len(differences) == 0 {
		return err
	}
	return a.explainRow(ctx, newCheck(), differences[0])
}

// enterBlocks checks the blocks in the span of a ledger and enters the rows that they must
// have. If there are findings, it returns the one about the lowest block.
func (a *Audit) enterBlocks(ctx context.Context, l *Ledger, newCheck func() BlockCheck) error {
	from, to := l.Span()
	first := l.sift == nil
	if first {
		a.progress.Begin("blocks", uint64(to-from))
	}
	var next, stop atomic.Int64 // moments
	next.Store(int64(from))
	stop.Store(int64(to))
	var mu sync.Mutex
	var wrong *Finding // guarded by mu; the one about the lowest block
	group, ctx := errgroup.WithContext(ctx)
	for range a.Workers() {
		check, own := newCheck(), l.Fork()
		rows := &expectedRows{audit: a, ctx: ctx, ledger: own}
		group.Go(func() error {
			for m := next.Add(1) - 1; m < stop.Load(); m = next.Add(1) - 1 {
				transactions, err := rows.check(check, int(m))
				mu.Lock()
				if f := (*Finding)(nil); errors.As(err, &f) {
					// Lower blocks are already in progress; stop starting higher ones.
					if wrong == nil || m < stop.Load() {
						wrong = f
						stop.Store(min(m, stop.Load()))
					}
					err = nil
				}
				mu.Unlock()
				if err != nil {
					return err
				}
				if first {
					a.blocks.Add(1)
					a.transactions.Add(uint64(transactions))
					a.progress.add(1)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			l.Join(own)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	return nil
}

// expectedRows receives the rows that a block must have. It enters them into the ledger, and
// compares those from which the block was read with the store byte by byte, so that every
// stored byte is covered. It is for use by one goroutine.
type expectedRows struct {
	audit  *Audit
	ctx    context.Context
	ledger *Ledger
	moment int    // of the block under check
	row    []byte // scratch
	failed error
}

// check checks the block of a moment.
func (r *expectedRows) check(check BlockCheck, moment int) (transactions int, err error) {
	r.moment, r.failed = moment, nil
	transactions, err = check.Check(r.ctx, r.audit.blockAt(moment), r)
	if err == nil {
		err = r.failed
	}
	return transactions, err
}

// Put implements kv.Putter.
func (r *expectedRows) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	row := kv.Row{Partition: partition, Sort: sort, Value: value}
	r.ledger.Enter(Expected, rowSubject(nil, t, row), value, r.moment)
	if r.failed != nil || !r.audit.hasOwn(t) {
		return
	}
	stored, err := r.audit.Store.Get(r.ctx, t, partition, sort, r.row[:0])
	if err != nil {
		r.failed = r.audit.Unreadable(r.ctx, t, partition, sort, err)
		return
	}
	r.row = stored
	r.failed = r.audit.sameValue(t, row, stored)
}

// tables returns the tables with rows of blocks.
func (a *Audit) tables() []*kv.Table { return slices.Concat(a.Own, a.Derived) }

// enterRows enters the stored rows of the blocks in the range.
func (a *Audit) enterRows(ctx context.Context, l *Ledger) error {
	for _, t := range a.tables() {
		for row, err := range a.Walk(ctx, t) {
			if err != nil {
				return err
			}
			block := t.BlockOf(row.Sort)
			switch {
			case block > a.Settled.Number:
				return a.Finding(t, row.Partition, row.Sort, fmt.Sprintf("no row above block %d, the last settled block", a.Settled.Number), "one")
			case a.Unfinished > 0 && block >= a.Unfinished && block < a.First:
				continue
			case block < a.First && !(a.Genesis && block == 0):
				return a.Finding(t, row.Partition, row.Sort, fmt.Sprintf("no row below block %d, the first block of the archive", a.First), "one")
			}
			if moment, checked := a.momentOf(block); checked {
				l.Enter(Found, rowSubject(nil, t, row), row.Value, moment)
			}
		}
	}
	return nil
}

// rowSubject appends the subject of a row in a ledger.
func rowSubject(dst []byte, t *kv.Table, row kv.Row) []byte {
	dst = append(dst, t.ID)
	dst = binary.BigEndian.AppendUint64(dst, row.Sort)
	return append(dst, row.Partition...)
}

// explainRow returns the finding for a row that differs from what its block requires.
func (a *Audit) explainRow(ctx context.Context, check BlockCheck, d Difference) error {
	subject := []byte(d.Subject)
	wanted := &wantedRow{row: kv.Row{Sort: binary.BigEndian.Uint64(subject[1:]), Partition: subject[9:]}}
	for _, t := range a.tables() {
		if t.ID == subject[0] {
			wanted.table = t
		}
	}
	if _, err := check.Check(ctx, a.blockAt(d.Moment), wanted); err != nil {
		return err
	}
	table, row := wanted.table, wanted.row
	err := a.CheckRow(ctx, table, row, wanted.put)
	f := (*Finding)(nil)
	switch {
	case err == nil:
		return fmt.Errorf("row %s of %s changed while it was checked", a.DescribeKey(table, row.Partition, row.Sort), table.Name)
	case !errors.As(err, &f):
		return err
	}
	if name := check.NameOf(row.Partition); name != "" {
		f.Key += ", which is " + name
	}
	return f
}

// CheckRow compares a stored row with the wanted one. If wanted is false, there must be no
// row with the key.
func (a *Audit) CheckRow(ctx context.Context, t *kv.Table, row kv.Row, wanted bool) error {
	got, err := a.Store.Get(ctx, t, row.Partition, row.Sort, nil)
	missing := errors.Is(err, kv.ErrNotFound)
	switch {
	case err != nil && !missing:
		return a.Unreadable(ctx, t, row.Partition, row.Sort, err)
	case missing && wanted:
		return a.Finding(t, row.Partition, row.Sort, "a row with "+DescribeValue(row.Value, 0), "none")
	case missing:
		return nil
	case !wanted:
		return a.Finding(t, row.Partition, row.Sort, "no such row", "a row with "+DescribeValue(got, 0))
	}
	return a.sameValue(t, row, got)
}

// wantedRow extracts one row from those that a block puts.
type wantedRow struct {
	table *kv.Table
	row   kv.Row
	put   bool // whether the block puts it
}

// Put implements kv.Putter.
func (w *wantedRow) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	if t == w.table && sort == w.row.Sort && bytes.Equal(partition, w.row.Partition) {
		w.row.Value, w.put = bytes.Clone(value), true
	}
}
