package audit

import (
	"context"

	"ashlar/kv"
)

// countedRows is how many rows a walk counts before it updates the progress.
const countedRows = 4096

// Walk is Walk of the store with progress. Errors are returned as findings. In a store that is
// written piecewise, rows above the settled block are left out: they belong to a write that
// is not complete, or that a crash has cut off.
func (a *Audit) Walk(ctx context.Context, t *kv.Table) func(yield func(kv.Row, error) bool) {
	return a.walk(ctx, t, a.count)
}

// WalkAgain is Walk of a table that another walk has read already. It does not count the rows a second time.
func (a *Audit) WalkAgain(ctx context.Context, t *kv.Table) func(yield func(kv.Row, error) bool) {
	return a.walk(ctx, t, func(uint64) {})
}

func (a *Audit) walk(ctx context.Context, t *kv.Table, read func(rows uint64)) func(yield func(kv.Row, error) bool) {
	return func(yield func(kv.Row, error) bool) {
		a.progress.Begin(t.Name, 1<<16)
		last := kv.Row{}
		count := uint64(0)
		_, piecewise := a.Store.(kv.Piecewise)
		defer func() { read(count % countedRows) }()
		for row, err := range a.Store.Walk(ctx, t, 0) {
			if err != nil {
				yield(row, a.broken(ctx, t, last, count > 0, err))
				return
			}
			if count++; count%countedRows == 0 {
				read(countedRows)
				a.progress.Walked(row.Walked)
			}
			last.Partition, last.Sort = append(last.Partition[:0], row.Partition...), row.Sort
			if piecewise && t.BlockOf(row.Sort) > a.Settled.Number {
				continue
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (a *Audit) count(rows uint64) {
	a.rows.Add(rows)
	a.progress.Read(rows)
}

// broken translates an error in the middle of a walk.
func (a *Audit) broken(ctx context.Context, t *kv.Table, last kv.Row, any bool, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := &Finding{Table: t.Name, Key: "the first row", Expected: "rows that can be read", Got: damage(err)}
	if any {
		f.Key = "after " + a.DescribeKey(t, last.Partition, last.Sort)
		f.Block = t.BlockOf(last.Sort)
	}
	return f
}
