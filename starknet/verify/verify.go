// Package verify checks the archive of a Starknet network against itself. It changes nothing,
// and trusts only the settled pointer: the hash of the last block.
//
// For every block in the range it checks that
//   - its rows decode;
//   - the parent hash of the next block is its hash;
//   - its hash is that of its header, transactions, receipts and events, as far as it can be
//     recomputed;
//   - the rows that Append would write for the block, from transaction look-ups to postings of
//     keys, are exactly the stored ones, byte for byte.
//
// The first block of the archive may have any number.
//
// Not all hashes can be recomputed: see [blockhash]. An import can recompute more of them, as an
// archive has no signatures ([blockhash.Checker.CheckUnsigned]). The report contains the number
// of recomputed hashes. The contents of other blocks, and anything that hashes do not cover, can
// be checked only as far as it is stored twice.
//
// Each table is read once from beginning to end, in memory that does not grow with the archive.
// Only after an inconsistency are tables read again, to find the row.
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

// Options select what to check.
type Options struct {
	From, To uint64 // blocks; 0 and [audit.Head] stand for the first and last block of the archive
}

// Report is the result of a check.
type Report struct {
	audit.Report
	Events     uint64 `json:"events"`
	Recomputed uint64 `json:"recomputed"` // blocks whose hash was recomputed from their contents
	Taken      uint64 `json:"taken"`      // blocks whose hash could not be recomputed
}

// Run checks the archive in a store. Inconsistencies are in the report; an error means that the
// archive could not be checked.
func Run(ctx context.Context, store kv.Store, options Options, progress *audit.Progress) (*Report, error) {
	c, err := newChecker(ctx, store, options, progress)
	if err != nil {
		r, err := audit.UnreadablePointers(ctx, "format, chain, first and settled", err)
		return &Report{Report: r}, err
	}
	r, err := c.Report(ctx, c.CheckBlocks(ctx, c.newBlockCheck))
	if err != nil {
		return nil, err
	}
	report := &Report{Report: r}
	if r.Sound { // otherwise some blocks may have been counted twice
		report.Events, report.Recomputed, report.Taken = c.events.Load(), c.recomputed.Load(), c.taken.Load()
	}
	return report, nil
}

// checker holds what all parts of a check share.
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
	checked := audit.Archive{Store: store, First: span.First, Own: c.tables.Own(), Derived: c.tables.Derived(), DescribeKey: archive.DescribeKey}
	c.Audit, err = audit.New(ctx, checked, options.From, options.To, progress)
	return c, err
}
