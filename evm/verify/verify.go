// Package verify reads a network's archive back and checks it against itself. It
// changes nothing, and believes nothing but the settled pointer: the hash of the
// last block, from which all else follows.
//
// Of every block in the range it checks that the header has its hash, names its
// parent's, and adds up its total difficulty; that transactions, uncles,
// withdrawals and receipts have the roots that the header names, the receipts its
// gas and its bloom filter, each transaction its sender; and that the rows that
// Append would write for such a block are the ones that are there, byte for byte:
// none is missing, from the look-up of a transaction to the posting of a topic,
// none is another, and none is too many.
//
// Of the state it checks that every trie node has the hash that its parent holds,
// up to the state root; that what the tries hold is what the tables of accounts
// and slots hold, both ways; that there is no node that nothing refers to; and
// that every code is there, has its hash, and is some account's. That is done as
// of every block of the range at once ([Options.Full]), or as of a sample of blocks.
//
// It reads every table from beginning to end, once, so it takes time in proportion
// to what is stored; of what it reads it keeps sums (see [audit.Ledger]), so its memory
// does not grow with the archive, but for eight bytes or so a distinct code. Only
// where a sum is wrong is more read, to find out which row is.
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

	"github.com/ethereum/go-ethereum/common"
)

// Options say what to check.
type Options struct {
	From, To uint64 // blocks; a To above the last settled block is an [audit.ErrRange], unless it is [audit.Head]
	Full     bool   // the state as of every block, not of a sample
}

// sampledStates is how many blocks a sample has: the first and the last of the
// range, and others at random.
const sampledStates = 16

// Report says what was checked.
type Report struct {
	audit.Report
	States int `json:"states"` // as of how many blocks the state was checked
}

// Run checks the archive in a store. What is wrong with the archive is in the
// report: the error says only that it could not be checked.
func Run(ctx context.Context, store kv.Store, options Options, progress *audit.Progress) (*Report, error) {
	c, err := newChecker(ctx, store, options, progress)
	if err != nil {
		r, err := audit.UnreadablePointers(ctx, "format, genesis and settled", err)
		return &Report{Report: r}, err
	}
	r, err := c.Report(c.run(ctx))
	if err != nil {
		return nil, err
	}
	report := &Report{Report: r}
	if r.Sound {
		report.States = c.moments.len()
	}
	return report, nil
}

// checker is what the parts of a check share.
type checker struct {
	*audit.Audit
	archive *archive.Archive
	tables  archive.TableSet
	moments moments // at which the state is checked
	codes   codeUse
	late    audit.LowestFinding // about rows of which all but themselves may be right
}

func newChecker(ctx context.Context, store kv.Store, options Options, progress *audit.Progress) (*checker, error) {
	a, err := archive.OpenUnchecked(ctx, store)
	if err != nil {
		return nil, err
	}
	c := &checker{archive: a, tables: archive.NamedTables()}
	family := audit.Family{Own: c.tables.Own(), Derived: c.tables.Derived(), DescribeKey: archive.DescribeKey, Place: c.place}
	const genesis = 0
	if c.Audit, err = audit.New(ctx, store, family, genesis, options.From, options.To, progress); err != nil {
		return nil, err
	}
	c.moments = moments{first: c.From, count: int(c.To - c.From + 1)}
	if !options.Full && c.moments.count > sampledStates {
		c.moments.sample = sample(c.From, c.To)
	}
	return c, nil
}

// place is how far a row lies in a table in the order of hashes, or of the paths of nodes.
func (c *checker) place(t *kv.Table, partition []byte) uint64 {
	if t != c.tables.TrieNodes {
		return audit.Leading(partition, 8)
	}
	owner, path, err := archive.ParseNodeKey(partition)
	if err != nil || owner == (common.Hash{}) { // the account trie comes first
		return audit.Leading(path, 4) / 2
	}
	return 1<<15 + audit.Leading(owner[:], 8)/2
}

// sample chooses blocks of a range: its first and last, and one at random from
// each part of what lies between.
func sample(from, to uint64) []uint64 {
	chosen := []uint64{from}
	part := (to - from - 1) / (sampledStates - 2)
	for i := range uint64(sampledStates - 2) {
		chosen = append(chosen, from+1+i*part+rand.Uint64N(part))
	}
	return append(chosen, to)
}

func (c *checker) run(ctx context.Context) error {
	if err := c.CheckBlocks(ctx, c.newBlockCheck); err != nil {
		return err
	}
	return c.checkState(ctx)
}

// header returns a header, or a finding.
func (c *checker) header(ctx context.Context, number uint64) (*archive.Header, error) {
	header, err := c.archive.Header(ctx, number)
	if err != nil {
		return nil, c.unreadableAt(ctx, c.tables.Headers, number, err)
	}
	return header, nil
}

// atBlock begins a finding about a block's row in headers, bodies or receipts.
func (c *checker) atBlock(t *kv.Table, number uint64) *audit.Finding {
	return &audit.Finding{Table: t.Name, Key: fmt.Sprintf("block %d", number), Block: number}
}

// unreadableAt is unreadable for a block's row in headers, bodies or receipts.
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
	count  int      // that many blocks from the first on
	sample []uint64 // or these, where there are any
}

func (m moments) len() int {
	if m.sample != nil {
		return len(m.sample)
	}
	return m.count
}

// block is the block of a moment.
func (m moments) block(i int) uint64 {
	if m.sample != nil {
		return m.sample[i]
	}
	return m.first + uint64(i)
}

// from is the first moment that is not before a block, and len where there is none.
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
