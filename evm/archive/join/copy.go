package join

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"ashlar/evm/archive"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
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

// span is a range of blocks.
type span struct{ first, last uint64 }

// spans returns the blocks of which the rows of a table are copied, in ascending order.
func (j *join) spans(t *kv.Table) []span {
	switch {
	case !j.above:
		return []span{{0, j.border}}
	case t == j.tables.Codes: // their sort key is not of a block
		return []span{{0, j.other.Settled.Number}}
	}
	later := span{j.border + 1, j.other.Settled.Number}
	if older, there := j.olderBlocks(); there && slices.Contains(slices.Concat(j.tables.Own(), j.tables.Derived()), t) {
		return []span{older, later}
	}
	return []span{later}
}

// olderBlocks returns the blocks that the upper archive has before the first one of the lower archive: those that were
// added to it without their state. If rows above the border are not added, they are there already.
func (j *join) olderBlocks() (older span, there bool) {
	older = span{max(j.other.Extent.Blocks, 1), j.into.Extent.Blocks - 1} // the genesis is in both
	return older, j.above && older.first < j.into.Extent.Blocks
}

// copyTable copies the rows of a table. Partitions that were complete are left out.
func (j *join) copyTable(ctx context.Context, t *kv.Table) error {
	j.progress.Begin("copy "+t.Name, 1<<16)
	spans := j.spans(t)
	copied, err := j.copied(ctx, t)
	if err != nil {
		return err
	}
	var partition []byte
	any := false
	for row, err := range j.from.WalkAfter(ctx, t, j.state.After, spans[0].first<<t.IndexBits) {
		if err != nil {
			return err
		}
		if any && bytes.Equal(partition, row.Partition) {
			continue
		}
		partition, any = append(partition[:0], row.Partition...), true
		j.progress.Walked(row.Walked)
		if !copied(partition) {
			continue
		}
		for _, s := range spans {
			if err := j.copyPartition(ctx, t, partition, s); err != nil {
				return err
			}
		}
		j.state.After = bytes.Clone(partition)
		if err := j.flush(ctx, j.batchBytes, true); err != nil {
			return err
		}
	}
	return j.flush(ctx, 1, true)
}

// copied returns which partitions of a table are copied. A window removes versions of accounts and leaves their codes, so
// from an upper archive with a window only the codes of the versions that are copied come along.
func (j *join) copied(ctx context.Context, t *kv.Table) (func(partition []byte) bool, error) {
	if t != j.tables.Codes || !j.above || j.other.Removed == nil {
		return func([]byte) bool { return true }, nil
	}
	used, err := archive.CodesAfter(ctx, j.from, j.border)
	return func(partition []byte) bool {
		_, ok := used[common.BytesToHash(partition)]
		return ok
	}, err
}

// copyPartition copies the rows of a partition in ascending order, in which a distributed
// engine splits partitions and nodes follow each other.
func (j *join) copyPartition(ctx context.Context, t *kv.Table, partition []byte, of span) (err error) {
	var chain *archive.NodeChain
	if j.above && t == j.tables.TrieNodes {
		if chain, err = archive.StartNodeChain(ctx, j.to, partition, j.border); err != nil {
			return err
		}
	}
	rows := j.from.Scan(ctx, t, partition, of.first<<t.IndexBits, (of.last+1)<<t.IndexBits-1)
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
