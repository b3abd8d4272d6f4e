package audit

import (
	"context"

	"ashlar/kv"
)

// countedRows is how many rows a walk counts before it updates the progress.
const countedRows = 4096

// Walk is Walk of the store with progress. Errors are returned as findings.
func (a *Audit) Walk(ctx context.Context, t *kv.Table) func(yield func(kv.Row, error) bool) {
	return func(yield func(kv.Row, error) bool) {
		a.progress.Begin(t.Name, a.walkEnd(t))
		last := kv.Row{}
		count := uint64(0)
		defer func() { a.count(count % countedRows) }()
		for row, err := range a.Store.Walk(ctx, t, 0) {
			if err != nil {
				yield(row, a.broken(ctx, t, last, count > 0, err))
				return
			}
			if count++; count%countedRows == 0 {
				a.count(countedRows)
				a.progress.At(a.walkedTo(t, row))
			}
			last.Partition, last.Sort = append(last.Partition[:0], row.Partition...), row.Sort
			if !yield(row, nil) {
				return
			}
		}
	}
}

// walkEnd and walkedTo return the size of a table and the position of a row in it, as a
// measure of progress: block numbers, or the first two bytes of hashes. They assume that
// rows are ordered by key.

func (a *Audit) walkEnd(t *kv.Table) uint64 {
	if a.hasOwn(t) {
		return a.Settled.Number - a.First + 1
	}
	return 1 << 16
}

func (a *Audit) walkedTo(t *kv.Table, row kv.Row) uint64 {
	switch {
	case a.hasOwn(t):
		return max(t.BlockOf(row.Sort), a.First) - a.First
	case a.Place != nil:
		return a.Place(t, row.Partition)
	}
	return Leading(row.Partition, 8)
}

// Leading returns the first 16 bits of a key that has the given number of bits per byte.
func Leading(key []byte, bits int) (n uint64) {
	for i := range 16 / bits {
		n <<= bits
		if i < len(key) {
			n |= uint64(key[i])
		}
	}
	return n
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
