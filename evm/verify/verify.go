// Package verify checks an EVM network's archive against itself. It changes nothing, and
// trusts only the settled pointer: the hash of the last block, from which everything else
// follows.
//
// For every block in the range it checks that
//   - the header has its hash, links to its parent and has the right total difficulty;
//   - transactions, uncles, withdrawals, receipts and access list have the roots and hashes
//     in the header, the receipts its gas and bloom filter, and each transaction its sender;
//   - the rows that Append would write for the block, from transaction look-ups to postings
//     of topics, are exactly the stored ones, byte for byte.
//
// For the state it checks that
//   - every trie node has the hash in its parent, up to the state root;
//   - the tries and the tables of accounts and slots have the same contents;
//   - every node is referenced;
//   - every code is stored, has its hash and belongs to some account.
//
// If the network has a trace index, it checks that each block's rows in it have the
// checksum that was written with them. A missing or different row is found, and named by
// executing its block again.
//
// An archive can begin with a later block than the genesis, its states with a later one
// still, and their trie nodes even later. What cannot be checked then: that its first block descends
// from the genesis, and the total difficulty of that block. Tries without nodes are built again from accounts and slots and
// compared with the roots in the headers, as of a sample of blocks even with [Options.Full], and only in a store whose
// rows are in order. Of the other states without trie nodes the form of the rows is checked: keys, encodings, that none
// repeats the one before, and that each code of an account is stored.
//
// The state is checked as of every block of the range at once ([Options.Full]), or as of a
// sample of blocks.
//
// Each table is read once from beginning to end, accounts and slots a second time if tries are built again, so the time is
// proportional to the size of the archive. The results are kept as sums (see [audit.Ledger]), so memory does not grow with
// the archive, except for about eight bytes per distinct code. Only if a sum is wrong are
// tables read again, to find the row.
package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"ashlar/evm/archive"
	"ashlar/history/audit"
	"ashlar/kv"
)

// Options select what to check.
type Options struct {
	From, To uint64 // blocks; a From of 0 stands for the first; a To above the last settled block is an [audit.ErrRange], unless it is [audit.Head]
	Full     bool   // check the state as of every block, not of a sample
}

// sampledStates is the number of blocks in a sample: the first and last of the range, and
// others at random.
const sampledStates = 16

// Report is the result of a check.
type Report struct {
	audit.Report
	States int `json:"states"` // number of blocks as of which the state was checked against the state root

	Bare      *Blocks `json:"bare,omitempty"`      // blocks whose states are stored without trie nodes
	Rebuilt   int     `json:"rebuilt,omitempty"`   // number of these whose tries were built again; they count as States
	Stateless *Blocks `json:"stateless,omitempty"` // blocks whose states are not stored
}

// Blocks is a range of blocks.
type Blocks struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// blocksUpTo returns a range without its end, nil if it is empty.
func blocksUpTo(from, end uint64) *Blocks {
	if from >= end {
		return nil
	}
	return &Blocks{From: from, To: end - 1}
}

// Run checks the archive in a store. Inconsistencies are in the report; an error means that
// the archive could not be checked.
func Run(ctx context.Context, store kv.Store, options Options, progress *audit.Progress) (*Report, error) {
	c, err := newChecker(ctx, store, options, progress)
	if err != nil {
		r, err := audit.UnreadablePointers(ctx, "format, genesis and settled", err)
		return &Report{Report: r}, err
	}
	r, err := c.Report(ctx, c.run(ctx))
	if err != nil {
		return nil, err
	}
	if !r.Sound {
		return &Report{Report: r}, c.checkExtent(ctx)
	}
	return c.report(r), nil
}

// report returns the report of a sound archive.
func (c *checker) report(r audit.Report) *Report {
	return &Report{
		Report: r, States: c.moments.len() + len(c.rebuilt), Rebuilt: len(c.rebuilt),
		Bare:      c.bare,
		Stateless: blocksUpTo(c.From, min(c.To+1, c.archive.Extent().State)),
	}
}

// checkExtent returns an [audit.ErrRemoved] if a window has moved since the check began.
func (c *checker) checkExtent(ctx context.Context) error {
	now, err := archive.OpenUnchecked(ctx, c.Store)
	if err == nil && now.Extent() != c.archive.Extent() {
		err = audit.ErrRemoved
	}
	return err
}

// checker holds what all parts of a check share.
type checker struct {
	*audit.Audit
	archive *archive.Archive
	tables  archive.TableSet
	moments moments  // at which the state is checked by its trie nodes
	bare    *Blocks  // blocks whose states are stored without trie nodes; nil: none
	rebuilt []uint64 // those of bare as of which the tries are built again
	codes   codeUse
	late    audit.LowestFinding // findings that count only if no others are made
}

func newChecker(ctx context.Context, store kv.Store, options Options, progress *audit.Progress) (*checker, error) {
	a, err := archive.OpenUnchecked(ctx, store)
	if err != nil {
		return nil, err
	}
	c := &checker{archive: a, tables: archive.NamedTables()}
	extent := a.Extent()
	checked := audit.Archive{
		Store: store, First: extent.Blocks, Genesis: true,
		Own: c.tables.Own(), Derived: c.tables.Derived(), DescribeKey: archive.DescribeKey,
	}
	if checked.Unfinished, err = a.OlderUnder(ctx); err != nil {
		return nil, err
	}
	if options.From == 0 {
		options.From = extent.Blocks
	}
	if c.Audit, err = audit.New(ctx, checked, options.From, options.To, progress); err != nil {
		return nil, err
	}
	if first := max(c.From, extent.Tries); first <= c.To {
		c.moments = moments{first: first, count: int(c.To - first + 1)}
		if !options.Full && c.moments.count > sampledStates {
			c.moments.sample = sample(first, c.To, sampledStates)
		}
	}
	if c.bare = blocksUpTo(max(c.From, extent.State), min(c.To+1, extent.Tries)); c.bare != nil {
		most := uint64(rebuiltSample)
		if options.Full {
			most = rebuiltMost
		}
		c.rebuilt = sample(c.bare.From, c.bare.To, most)
	}
	return c, nil
}

// sample returns a number of blocks of a range: the first, the last, and a random one from each of equal parts in
// between. If the range has no more, it returns all.
func sample(from, to, count uint64) (chosen []uint64) {
	if to-from < count {
		for ; from <= to; from++ {
			chosen = append(chosen, from)
		}
		return chosen
	}
	chosen = append(chosen, from)
	part := (to - from - 1) / (count - 2)
	for i := range count - 2 {
		chosen = append(chosen, from+1+i*part+rand.Uint64N(part))
	}
	return append(chosen, to)
}

func (c *checker) run(ctx context.Context) error {
	if err := c.CheckBlocks(ctx, c.newBlockCheck); err != nil {
		return err
	}
	if err := c.checkState(ctx); err != nil {
		return err
	}
	if err := c.checkRebuilt(ctx); err != nil {
		return err
	}
	return c.checkTraces(ctx)
}

// header returns a header, or a finding as the error.
func (c *checker) header(ctx context.Context, number uint64) (*archive.Header, error) {
	header, err := c.archive.Header(ctx, number)
	if err != nil {
		return nil, c.unreadableAt(ctx, c.tables.Headers, number, err)
	}
	return header, nil
}

// atBlock returns an incomplete finding about a block's row in headers, bodies or receipts.
func (c *checker) atBlock(t *kv.Table, number uint64) *audit.Finding {
	return &audit.Finding{Table: t.Name, Key: fmt.Sprintf("block %d", number), Block: number}
}

// unreadableAt is Unreadable for a block's row in headers, bodies or receipts.
func (c *checker) unreadableAt(ctx context.Context, t *kv.Table, number uint64, err error) error {
	err = c.Unreadable(ctx, t, nil, number, err)
	if f := (*audit.Finding)(nil); errors.As(err, &f) {
		f.Key = c.atBlock(t, number).Key
	}
	return err
}

// moments are the blocks as of which the state is checked, in ascending order.
type moments struct {
	first  uint64
	count  int      // number of consecutive blocks from first
	sample []uint64 // used instead of first and count, if any
}

func (m moments) len() int {
	if m.sample != nil {
		return len(m.sample)
	}
	return m.count
}

// block returns the block of a moment.
func (m moments) block(i int) uint64 {
	if m.sample != nil {
		return m.sample[i]
	}
	return m.first + uint64(i)
}

// from returns the first moment at or after a block, or len if there is none.
func (m moments) from(block uint64) int {
	if m.sample != nil {
		i, _ := slices.BinarySearch(m.sample, block)
		return i
	}
	if block <= m.first {
		return 0
	}
	return int(min(block-m.first, uint64(m.count)))
}
