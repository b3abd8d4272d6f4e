package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/history/audit"
	"ashlar/history/rows"
	"ashlar/kv"
)

// traceGroups is the number of groups of blocks whose checksums are added up together.
const traceGroups = 1 << 14

// traceSums is what is left of the checksums of the trace index, by group of blocks, after
// the rows that they cover have been subtracted: zero if all rows are right.
type traceSums struct {
	from  uint64 // first block
	width uint64 // blocks in a group
	sums  []uint64
}

func newTraceSums(from, to uint64) *traceSums {
	blocks := to - from + 1
	groups := min(blocks, traceGroups)
	return &traceSums{from: from, width: (blocks + groups - 1) / groups, sums: make([]uint64, groups)}
}

// of returns the sum that a block belongs to, or nil if the block is not covered.
func (s *traceSums) of(block uint64) *uint64 {
	if group := (block - s.from) / s.width; block >= s.from && group < uint64(len(s.sums)) {
		return &s.sums[group]
	}
	return nil
}

// wrong returns the blocks of the first group that has a rest.
func (s *traceSums) wrong() (from, to uint64, found bool) {
	group := slices.IndexFunc(s.sums, func(sum uint64) bool { return sum != 0 })
	from = s.from + uint64(group)*s.width
	return from, from + s.width - 1, group >= 0
}

// checkTraces checks the trace index by the checksums of its blocks. A block whose checksum
// is wrong is executed again to find the wrong row.
func (c *checker) checkTraces(ctx context.Context) error {
	from, to := c.From, c.To
	if first := c.archive.Extent().State; first > 0 {
		from = max(from, first+1) // the index begins after the first block with state
	}
	if from > to {
		return nil
	}
	for {
		sums := newTraceSums(from, to)
		if err := c.sumTraces(ctx, sums); err != nil {
			return err
		}
		var found bool
		if from, to, found = sums.wrong(); !found {
			return nil
		}
		to = min(to, c.To)
		if sums.width == 1 {
			return c.explainTraces(ctx, from)
		}
	}
}

// sumTraces adds up the checksums of blocks and subtracts what the rows add to them.
func (c *checker) sumTraces(ctx context.Context, sums *traceSums) error {
	for number := sums.from; number <= c.To && sums.of(number) != nil; number++ {
		if c.archive.HasTraces() {
			*sums.of(number) += archive.TraceSum(number, nil, nil) // the block has a row
		}
	}
	err := c.eachTraceRow(ctx, c.tables.TraceCounts, sums, func(row kv.Row, sum *uint64) error {
		if chunk := rows.Chunk(row.Sort); !bytes.Equal(row.Partition, chunk[:]) {
			return c.Finding(c.tables.TraceCounts, row.Partition, row.Sort, "no such row", "a row with "+audit.DescribeValue(row.Value, 0))
		}
		_, rest, err := archive.ParseTraceCounts(row.Sort, row.Value)
		if err != nil {
			return c.Unreadable(ctx, c.tables.TraceCounts, row.Partition, row.Sort, err)
		}
		*sum += rest - archive.TraceSum(row.Sort, nil, nil)
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range []*kv.Table{c.tables.TracePostings, c.tables.TxChanges} {
		err := c.eachTraceRow(ctx, t, sums, func(row kv.Row, sum *uint64) error {
			*sum -= archive.TraceSum(row.Sort, row.Partition, row.Value)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachTraceRow calls visit with the rows of a table of the trace index, each with the sum of
// its block.
func (c *checker) eachTraceRow(ctx context.Context, t *kv.Table, sums *traceSums, visit func(row kv.Row, sum *uint64) error) error {
	for row, err := range c.Walk(ctx, t) {
		if err != nil {
			return err
		}
		if row.Sort > c.Settled.Number {
			return c.Finding(t, row.Partition, row.Sort, fmt.Sprintf("no row above block %d, the last settled block", c.Settled.Number), "one")
		}
		if !c.archive.HasTraces() {
			return c.Finding(t, row.Partition, row.Sort, "no row, as there is no trace index", "one")
		}
		sum := sums.of(row.Sort)
		if sum == nil || row.Sort > c.To {
			continue
		}
		if err := visit(row, sum); err != nil {
			return err
		}
	}
	return nil
}

// explainTraces returns the finding about the row for which the checksum of a block is
// wrong. If the block cannot be executed, the finding is about the row with the checksum.
func (c *checker) explainTraces(ctx context.Context, number uint64) error {
	chunk := rows.Chunk(number)
	f := c.Finding(c.tables.TraceCounts, chunk[:], number, "rows that agree with their checksum", "rows that do not")
	traces, err := c.traces(ctx, number)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f.Got += fmt.Sprintf("; which one is wrong is not known, as executing the block again failed: %v", err)
		return f
	}
	expected := make(expectedTraces)
	c.archive.PutTraces(expected, number, traces)
	if err := c.compareTraces(ctx, number, expected); err != nil {
		return err
	}
	return f
}

// compareTraces returns the finding about the first row of a block in the trace index that
// is not as expected, if any.
func (c *checker) compareTraces(ctx context.Context, number uint64, expected expectedTraces) error {
	for _, key := range slices.Sorted(maps.Keys(expected)) {
		row := kv.Row{Partition: []byte(key[1:]), Sort: number, Value: expected[key]}
		t := c.tables.TracePostings
		switch key[0] {
		case c.tables.TraceCounts.ID:
			t = c.tables.TraceCounts
		case c.tables.TxChanges.ID:
			t = c.tables.TxChanges
		}
		if err := c.CheckRow(ctx, t, row, true); err != nil {
			return err
		}
	}
	for _, t := range []*kv.Table{c.tables.TracePostings, c.tables.TxChanges} {
		for row, err := range c.Walk(ctx, t) {
			if err != nil {
				return err
			}
			if _, ok := expected[keyOf(t, row.Partition)]; row.Sort == number && !ok {
				return c.CheckRow(ctx, t, row, false)
			}
		}
	}
	return nil
}

// traces executes a block for its traces. That needs no trie nodes.
func (c *checker) traces(ctx context.Context, number uint64) (*evm.Traces, error) {
	if number == 0 {
		return new(evm.Traces), nil
	}
	executor, err := execute.New(c.archive.Genesis().Config, execute.RecordTraces(true))
	if err != nil {
		return nil, err
	}
	before, err := c.header(ctx, number-1)
	if err != nil {
		return nil, err
	}
	delta, _, err := archive.ReadBlock(ctx, c.archive, number)
	if err != nil {
		return nil, err
	}
	parent := execute.Parent{
		Header: before.Header, State: c.archive.StateAt(number - 1),
		Ancestors: archive.Ancestors{History: &c.archive.History}, TotalDifficulty: before.TotalDifficulty,
	}
	return executor.Traces(ctx, parent, delta.Block)
}

// expectedTraces are the rows that a block must have in the trace index, by table and
// partition. It implements kv.Putter.
type expectedTraces map[string][]byte

func keyOf(t *kv.Table, partition []byte) string { return string(append([]byte{t.ID}, partition...)) }

// Put implements kv.Putter.
func (e expectedTraces) Put(t *kv.Table, partition []byte, _ uint64, value []byte) {
	e[keyOf(t, partition)] = bytes.Clone(value)
}
