package clone

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"ashlar/kv"

	"golang.org/x/sync/errgroup"
)

const (
	batchBytes = 4 << 20
	// heldBytes bounds the rows of a partition that are held, to be written in ascending
	// order, in which a distributed engine splits partitions. A partition with more is read
	// again, in that order.
	heldBytes = 16 << 20
	// rowBytes is what a row that is held takes besides its value, on machines with 64 bits.
	rowBytes = 64
	// markEvery is the time between two records of how far a copy is.
	markEvery = time.Second
	// waiting is the number of batches that wait to be written.
	waiting = 2
)

// copier copies the tables of a store.
type copier struct {
	Options
	from, to kv.Store
	state    *state

	table  *kv.Table
	at     *table // of table, up to the last complete partition
	next   table  // at, with the rows of the current partition
	marked time.Time
	fill   filled // the batch that is being filled
	full   chan<- filled
	held   []kv.Row // of the current partition, as they were walked
	size   int      // of held
}

// filled is a batch of rows of a table, and how far the copy of the table is once they are written.
type filled struct {
	table string
	batch kv.Batch // nil: the table begins
	rows  uint64
	bytes uint64
	share float64
}

// copyTables copies all tables. One goroutine reads, another one writes.
func (c *copier) copyTables(ctx context.Context) error {
	group, working := errgroup.WithContext(ctx)
	full := make(chan filled, waiting)
	c.full = full
	group.Go(func() error {
		defer close(full)
		for _, t := range c.Tables {
			if err := c.copyTable(working, t); err != nil {
				return fmt.Errorf("table %s: %w", t.Name, err)
			}
		}
		return nil
	})
	group.Go(func() error {
		for f := range full {
			if err := c.write(working, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return c.to.Sync(ctx)
}

// write writes a batch. The progress is that of what is written: a cluster takes longer to write rows than it
// takes to read them here.
func (c *copier) write(ctx context.Context, f filled) error {
	if f.batch == nil {
		c.Progress.begin("copying", f.table)
		return nil
	}
	if err := c.to.Write(ctx, f.batch); err != nil {
		return err
	}
	c.Progress.add(f.share, f.rows, f.bytes)
	return nil
}

// send has a batch written, and begins another one.
func (c *copier) send(ctx context.Context) error {
	select {
	case c.full <- c.fill:
		c.fill = filled{table: c.fill.table, batch: c.to.NewBatch(), share: c.fill.share}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copyTable copies a table from where an earlier run has stopped.
func (c *copier) copyTable(ctx context.Context, t *kv.Table) error {
	if c.state.Tables[t.Name] == nil {
		c.state.Tables[t.Name] = new(table)
	}
	c.table, c.at = t, c.state.Tables[t.Name]
	if c.at.Done {
		return nil
	}
	c.fill = filled{table: t.Name}
	if err := c.send(ctx); err != nil {
		return err
	}
	var after []byte
	if c.at.After != nil {
		after = *c.at.After
	}
	c.next = *c.at
	if err := c.walk(ctx, after); err != nil {
		return err
	}
	c.at.Done, c.at.After, c.fill.share = true, nil, 1
	return c.flush(ctx, true)
}

func (c *copier) walk(ctx context.Context, after []byte) error {
	var partition []byte
	any, whole := false, false // whole: the partition has been copied already
	for row, err := range c.from.WalkAfter(ctx, c.table, after, 0) {
		if err != nil {
			return err
		}
		c.fill.share = row.Walked
		if !any || !bytes.Equal(partition, row.Partition) {
			if any {
				if err := c.endPartition(ctx, partition); err != nil {
					return err
				}
			}
			partition, any, whole = append(partition[:0], row.Partition...), true, false
		}
		switch {
		case whole: // the progress goes on
			if time.Since(c.marked) > markEvery {
				c.marked = time.Now()
				err = c.send(ctx)
			}
		case c.table.Kind == kv.List: // walked in ascending order
			err = c.put(ctx, partition, row.Sort, row.Value)
		default:
			c.held = append(c.held, kv.Row{Sort: row.Sort, Value: bytes.Clone(row.Value)})
			if c.size += rowBytes + len(row.Value); c.size > heldBytes {
				whole = true
				err = c.scan(ctx, partition)
			}
		}
		if err != nil {
			return err
		}
	}
	if !any {
		return nil
	}
	return c.endPartition(ctx, partition)
}

// scan copies a whole partition in ascending order, instead of the rows that are held.
func (c *copier) scan(ctx context.Context, partition []byte) error {
	c.held, c.size = nil, 0
	rows := c.from.Scan(ctx, c.table, partition, 0, ^uint64(0))
	for rows.Next() {
		if err := c.put(ctx, partition, rows.Sort(), rows.Value()); err != nil {
			return err
		}
	}
	return rows.Close()
}

// endPartition copies the rows that are held, and records that the partition is complete.
func (c *copier) endPartition(ctx context.Context, partition []byte) error {
	if n := len(c.held); n > 1 && c.held[0].Sort > c.held[n-1].Sort {
		for i := range n / 2 {
			c.held[i], c.held[n-1-i] = c.held[n-1-i], c.held[i]
		}
	}
	for _, row := range c.held {
		if err := c.put(ctx, partition, row.Sort, row.Value); err != nil {
			return err
		}
	}
	clear(c.held)
	c.held, c.size = c.held[:0], 0
	done := bytes.Clone(partition)
	if done == nil {
		done = []byte{}
	}
	c.next.After = &done
	*c.at = c.next
	if time.Since(c.marked) > markEvery {
		return c.flush(ctx, true)
	}
	return nil
}

// put copies one row.
func (c *copier) put(ctx context.Context, partition []byte, sort uint64, value []byte) error {
	if c.Keep != nil && !c.Keep(c.table, sort) {
		return nil
	}
	c.fill.batch.Put(c.table, partition, sort, value)
	c.fill.rows++
	c.fill.bytes += uint64(len(partition) + len(value))
	c.next.Rows++
	c.next.Sum.add(c.table, partition, sort, value)
	if c.fill.batch.Bytes() < batchBytes {
		return nil
	}
	return c.flush(ctx, false)
}

// flush has the batch written; with mark, together with the state, which is that of the last
// complete partition.
func (c *copier) flush(ctx context.Context, mark bool) error {
	if mark {
		c.marked = time.Now()
		if err := c.state.mark(c.fill.batch); err != nil {
			return err
		}
	}
	return c.send(ctx)
}
