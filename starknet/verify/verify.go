// Package verify reads the archive of a Starknet network back and checks it against
// itself. It changes nothing, and believes the settled pointer: the hash of the
// last block.
//
// Of every block in the range it checks that its rows decode; that the block after
// it names its hash as parent; that its hash is that of what is held of it, the
// header, the transactions, their receipts and their events, as far as that can be
// told; and that the rows that Append would write for such a block are the ones
// that are there, byte for byte: none is missing, from the look-up of a transaction
// to the posting of a key, none is another, and none is too many. Blocks follow
// one another from the first that is held, which may be any.
//
// Hashes cannot be recomputed of all blocks: see [blockhash]. On import that can
// be told of more of them than here, as an archive does not hold signatures
// ([blockhash.Checker.CheckUnsigned]). The report says of how many it was done.
// What other blocks hold, and what is in no hash, is checked as far as it is
// stored twice: it is taken for what was imported.
//
// Every table is read from beginning to end, once, in memory that does not grow
// with the archive. Only where something is wrong is more read, to find out which
// row is.
package verify

import (
	"context"
	"fmt"
	"sync/atomic"

	"ashlar/history/audit"
	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
)

// Options say what to check.
type Options struct {
	From, To uint64 // blocks; a From of 0 is the first that is held, a To of [audit.Head] the last
}

// Report says what was checked.
type Report struct {
	audit.Report
	Events     uint64 `json:"events"`
	Recomputed uint64 `json:"recomputed"` // blocks whose hash was made anew from what they hold
	Taken      uint64 `json:"taken"`      // blocks whose hash could only be taken as it is stored
}

// Run checks the archive in a store. What is wrong with the archive is in the
// report: the error says only that it could not be checked.
func Run(ctx context.Context, store kv.Store, options Options, progress *audit.Progress) (*Report, error) {
	c, err := newChecker(ctx, store, options, progress)
	if err != nil {
		r, err := audit.UnreadablePointers(ctx, "format, chain, first and settled", err)
		return &Report{Report: r}, err
	}
	r, err := c.Report(c.CheckBlocks(ctx, c.newBlockCheck))
	if err != nil {
		return nil, err
	}
	report := &Report{Report: r}
	if r.Sound { // else blocks may have been checked again to find the row
		report.Events, report.Recomputed, report.Taken = c.events.Load(), c.recomputed.Load(), c.taken.Load()
	}
	return report, nil
}

// checker is what the parts of a check share.
type checker struct {
	*audit.Audit
	tables archive.TableSet
	reader *archive.Reader
	hashes *blockhash.Checker

	events, recomputed, taken atomic.Uint64 // checked
}

func newChecker(ctx context.Context, store kv.Store, options Options, progress *audit.Progress) (*checker, error) {
	a, err := archive.OpenUnchecked(ctx, store)
	if err != nil {
		return nil, err
	}
	span := a.Span()
	if span == nil {
		return nil, fmt.Errorf("%w: the archive is empty", audit.ErrRange)
	}
	if options.From == 0 {
		options.From = span.First
	}
	c := &checker{tables: archive.NamedTables(), reader: a.Settled(span), hashes: blockhash.New(starknet.FeltOfText(a.ChainID()))}
	family := audit.Family{Own: c.tables.Own(), Derived: c.tables.Derived(), DescribeKey: archive.DescribeKey}
	c.Audit, err = audit.New(ctx, store, family, span.First, options.From, options.To, progress)
	return c, err
}
