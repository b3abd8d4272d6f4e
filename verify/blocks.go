package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"ashlar/archive"
	"ashlar/chain/evm"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/trie"
	"golang.org/x/sync/errgroup"
)

// checkBlocks checks every block of the range, and then that the tables have just
// the rows that these blocks must have.
func (c *checker) checkBlocks(ctx context.Context) error {
	differences, err := compare(newLedger(int(c.to-c.from+1)), func(l *ledger) error {
		if err := c.enterBlocks(ctx, l); err != nil {
			return err
		}
		return c.enterRows(ctx, l)
	})
	if err != nil || len(differences) == 0 {
		return err
	}
	return c.explainRow(ctx, differences[0])
}

// enterBlocks checks the blocks in the span of a ledger and enters the rows that
// they must have. It returns the finding about the lowest block that has one.
func (c *checker) enterBlocks(ctx context.Context, l *ledger) error {
	from, to := l.span()
	first := l.sift == nil
	if first {
		c.progress.begin("blocks", uint64(to-from))
	}
	var next, stop atomic.Int64 // moments
	next.Store(int64(from))
	stop.Store(int64(to))
	var mu sync.Mutex
	var wrong *Finding // guarded by mu: about the lowest block
	group, ctx := errgroup.WithContext(ctx)
	for range workers() {
		check := &blockCheck{checker: c, ledger: l.fork(), hasher: trie.NewListHasher()}
		group.Go(func() error {
			for m := next.Add(1) - 1; m < stop.Load(); m = next.Add(1) - 1 {
				err := check.check(ctx, c.from+uint64(m))
				mu.Lock()
				if f := (*Finding)(nil); errors.As(err, &f) {
					// Those below are under way already, and no others are begun.
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
					c.blocks.Add(1)
					c.progress.add(1)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			l.join(check.ledger)
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

// enterRows enters the rows that the block tables have of blocks in the range.
func (c *checker) enterRows(ctx context.Context, l *ledger) error {
	for _, t := range archive.BlockTables() {
		for row, err := range c.walk(ctx, t) {
			if err != nil {
				return err
			}
			block := archive.BlockOf(t, row.Sort)
			if block > c.settled.Number {
				return finding(t, row.Partition, row.Sort, fmt.Sprintf("no row above block %d, the last settled", c.settled.Number), "one")
			}
			if block >= c.from && block <= c.to {
				l.enter(found, rowSubject(nil, t, row), row.Value, int(block-c.from))
			}
		}
	}
	return nil
}

// countedRows is how many rows a walk counts at once.
const countedRows = 4096

// walk is the store's Walk, with progress, and with its errors as findings.
func (c *checker) walk(ctx context.Context, t *kv.Table) func(yield func(kv.Row, error) bool) {
	return func(yield func(kv.Row, error) bool) {
		c.progress.begin(t.Name, c.walkEnd(t))
		last := kv.Row{}
		count := uint64(0)
		defer func() { c.count(count % countedRows) }()
		for row, err := range c.store.Walk(ctx, t) {
			if err != nil {
				yield(row, c.broken(ctx, t, last, count > 0, err))
				return
			}
			if count++; count%countedRows == 0 {
				c.count(countedRows)
				c.progress.at(c.walkedTo(t, row))
			}
			last.Partition, last.Sort = append(last.Partition[:0], row.Partition...), row.Sort
			if !yield(row, nil) {
				return
			}
		}
	}
}

// walkEnd and walkedTo say how far a walk is, as it is where rows come in the
// order of their keys: by block, or by the first two bytes of hashes.

func (c *checker) walkEnd(t *kv.Table) uint64 {
	if c.hasRowPerBlock(t) {
		return c.settled.Number + 1
	}
	return 1 << 16
}

func (c *checker) walkedTo(t *kv.Table, row kv.Row) uint64 {
	if c.hasRowPerBlock(t) {
		return row.Sort
	}
	if t != c.tables.trieNodes {
		return leading(row.Partition, 8)
	}
	owner, path, err := archive.ParseNodeKey(row.Partition)
	if err != nil || owner == (common.Hash{}) { // the account trie comes first
		return leading(path, 4) / 2
	}
	return 1<<15 + leading(owner[:], 8)/2
}

// leading is the first 16 bits of a key that has so many in a byte.
func leading(key []byte, bits int) (n uint64) {
	for i := range 16 / bits {
		n <<= bits
		if i < len(key) {
			n |= uint64(key[i])
		}
	}
	return n
}

// hasRowPerBlock says whether a table has one row a block, in the order of blocks.
func (c *checker) hasRowPerBlock(t *kv.Table) bool {
	return t == c.tables.headers || t == c.tables.bodies || t == c.tables.receipts
}

func (c *checker) count(rows uint64) {
	c.rows.Add(rows)
	c.progress.read(rows)
}

// broken is what an error in the middle of a walk means.
func (c *checker) broken(ctx context.Context, t *kv.Table, last kv.Row, any bool, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := &Finding{Table: t.Name, Key: "the first row", Expected: "rows that can be read", Got: damage(err)}
	if any {
		f.Key = "after " + archive.DescribeKey(t, last.Partition, last.Sort)
		f.Block = archive.BlockOf(t, last.Sort)
	}
	return f
}

// rowSubject is what a ledger calls a row of a block.
func rowSubject(dst []byte, t *kv.Table, row kv.Row) []byte {
	dst = append(dst, t.ID)
	dst = binary.BigEndian.AppendUint64(dst, row.Sort)
	return append(dst, row.Partition...)
}

// explainRow says what is wrong with a row that is not as its block wants it.
func (c *checker) explainRow(ctx context.Context, d difference) error {
	subject := []byte(d.subject)
	row := kv.Row{Sort: binary.BigEndian.Uint64(subject[1:]), Partition: subject[9:]}
	var table *kv.Table
	for _, t := range archive.BlockTables() {
		if t.ID == subject[0] {
			table = t
		}
	}
	number := c.from + uint64(d.moment)
	wanted, name, err := c.wantedRow(ctx, number, table, row)
	if err != nil {
		return err
	}
	got, err := c.store.Get(ctx, table, row.Partition, row.Sort, nil)
	missing := errors.Is(err, kv.ErrNotFound)
	if err != nil && !missing {
		return unreadable(ctx, table, row.Partition, row.Sort, err)
	}
	var f *Finding
	switch {
	case wanted == nil:
		f = finding(table, row.Partition, row.Sort, "no such row", "a row with "+describeValue(got, 0))
	case missing:
		f = finding(table, row.Partition, row.Sort, "a row with "+describeValue(*wanted, 0), "none")
	default:
		row.Value = *wanted
		if err := sameValue(table, row, got); !errors.As(err, &f) {
			return fmt.Errorf("row %s of %s changed while it was checked", archive.DescribeKey(table, row.Partition, row.Sort), table.Name)
		}
	}
	if name != "" {
		f.Key += ", which is " + name
	}
	return f
}

// wantedRow returns the value that a row of a block must have, nil where there
// must be none, and what its key stands for, where that is known.
func (c *checker) wantedRow(ctx context.Context, number uint64, table *kv.Table, row kv.Row) (value *[]byte, name string, err error) {
	check := &blockCheck{checker: c, ledger: newLedger(1), hasher: trie.NewListHasher(), number: number}
	header, err := c.header(ctx, number)
	if err != nil {
		return nil, "", err
	}
	block, senders, err := check.checkBody(ctx, header)
	if err != nil {
		return nil, "", err
	}
	receipts, err := check.checkReceipts(ctx, block)
	if err != nil {
		return nil, "", err
	}
	delta := &evm.Delta{Block: block, Senders: senders, Receipts: receipts}
	err = archive.EncodeBlock(putFunc(func(t *kv.Table, r kv.Row) {
		if t == table && r.Sort == row.Sort && bytes.Equal(r.Partition, row.Partition) {
			v := bytes.Clone(r.Value)
			value = &v
		}
	}), delta, header.TotalDifficulty)
	return value, termName(receipts, row.Partition), err
}
