package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/kv"
)

// settleUpper makes the rows of the state at and above the border those of the joined
// archive, after the lower rows were copied below them.
func (j *join) settleUpper(ctx context.Context) error {
	for _, t := range []*kv.Table{j.tables.Accounts, j.tables.Slots, j.tables.TrieNodes} {
		if err := j.settleTable(ctx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

func (j *join) settleTable(ctx context.Context, t *kv.Table) error {
	j.progress.Begin("settle "+t.Name, 1<<16)
	last := j.border
	if t == j.tables.TrieNodes {
		last = archive.WholeUntil(j.border)
	}
	var partition []byte
	any := false
	for row, err := range j.to.Walk(ctx, t, j.border) {
		if err != nil {
			return err
		}
		if row.Sort > last || any && bytes.Equal(partition, row.Partition) {
			continue
		}
		partition, any = append(partition[:0], row.Partition...), true
		j.progress.Walked(row.Walked)
		if err := j.settlePartition(ctx, t, partition, last); err != nil {
			return err
		}
		if err := j.flush(ctx, j.batchBytes, false); err != nil {
			return err
		}
	}
	return j.flush(ctx, 1, false)
}

// settlePartition removes the row at the border unless the lower archive has one too, and
// encodes those of nodes above it again.
func (j *join) settlePartition(ctx context.Context, t *kv.Table, partition []byte, last uint64) error {
	if _, err := j.from.Get(ctx, t, partition, j.border, nil); errors.Is(err, kv.ErrNotFound) {
		j.batch.Delete(t, partition, j.border)
		j.count(1)
	} else if err != nil {
		return err
	}
	if t != j.tables.TrieNodes || last == j.border {
		return nil
	}
	chain, err := archive.StartNodeChain(ctx, j.from, partition, j.border)
	if err != nil {
		return err
	}
	rows := j.to.Scan(ctx, t, partition, j.border+1, last)
	for rows.Next() {
		var value []byte
		if value, err = chain.Next(rows.Sort(), rows.Value()); err != nil {
			break
		}
		if !bytes.Equal(value, rows.Value()) {
			j.batch.Put(t, partition, rows.Sort(), value)
			j.count(1)
		}
		if err = j.flush(ctx, j.batchBytes, false); err != nil {
			break
		}
	}
	if closed := rows.Close(); err == nil {
		err = closed
	}
	return err
}
