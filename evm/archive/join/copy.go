package join

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"ashlar/evm/archive"
	"ashlar/kv"
)

// copyTables copies the rows of all tables, from where an earlier run has stopped.
func (j *join) copyTables(ctx context.Context) error {
	tables := archive.Tables()
	if j.state.Table != "" {
		at := slices.IndexFunc(tables, func(t *kv.Table) bool { return t.Name == j.state.Table })
		if at < 0 {
			return fmt.Errorf("%w: the join pointer names the table %q", archive.ErrCorrupt, j.state.Table)
		}
		tables = tables[at:]
	}
	for _, t := range tables {
		if t.Name != j.state.Table {
			j.state.Table, j.state.After = t.Name, nil
		}
		if err := j.copyTable(ctx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

// span returns the sort keys that are copied of a table.
func (j *join) span(t *kv.Table) (from, to uint64) {
	first, last := uint64(0), j.border
	if j.above {
		first, last = j.border+1, j.other.Settled.Number
	}
	if t == j.tables.Codes { // their sort key is not of a block
		first = 0
	}
	return first << t.IndexBits, (last+1)<<t.IndexBits - 1
}

// copyTable copies the rows of a table. Partitions that were complete are left out.
func (j *join) copyTable(ctx context.Context, t *kv.Table) error {
	j.progress.Begin("copy "+t.Name, 1<<16)
	from, to := j.span(t)
	var partition []byte
	any := false
	for row, err := range j.from.WalkAfter(ctx, t, j.state.After, from) {
		if err != nil {
			return err
		}
		if any && bytes.Equal(partition, row.Partition) {
			continue
		}
		partition, any = append(partition[:0], row.Partition...), true
		j.progress.Walked(row.Walked)
		if err := j.copyPartition(ctx, t, partition, from, to); err != nil {
			return err
		}
		j.state.After = bytes.Clone(partition)
		if err := j.flush(ctx, j.batchBytes, true); err != nil {
			return err
		}
	}
	return j.flush(ctx, 1, true)
}

// copyPartition copies the rows of a partition in ascending order, in which a distributed
// engine splits partitions and nodes follow each other.
func (j *join) copyPartition(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) (err error) {
	var chain *archive.NodeChain
	if j.above && t == j.tables.TrieNodes {
		if chain, err = archive.StartNodeChain(ctx, j.to, partition, j.border); err != nil {
			return err
		}
	}
	rows := j.from.Scan(ctx, t, partition, from, to)
	for rows.Next() {
		value := rows.Value()
		if chain != nil && rows.Sort() <= archive.WholeUntil(j.border) {
			if value, err = chain.Next(rows.Sort(), value); err != nil {
				break
			}
		}
		j.batch.Put(t, partition, rows.Sort(), value)
		j.count(1)
		if err = j.flush(ctx, j.batchBytes, false); err != nil {
			break
		}
	}
	if closed := rows.Close(); err == nil {
		err = closed
	}
	return err
}
