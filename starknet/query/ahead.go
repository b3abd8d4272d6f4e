package query

import (
	"context"

	"ashlar/history/paging"
	"ashlar/history/postings"
	"ashlar/starknet/archive"
)

// This file is for stores whose reads take a round trip. It reads in parallel what a query is
// going to need. On an embedded store it does nothing.

// termsAhead returns how to read where several terms of a filter occur; nil if nothing is read ahead.
func (v *View) termsAhead(ctx context.Context) postings.Ahead[postings.Term] {
	if !v.blocks.Ahead() {
		return nil
	}
	return func(terms []postings.Term, from, to uint64) {
		wants := v.blocks.Wants()
		for _, term := range terms {
			wants.Postings(term, from, to)
		}
		wants.Read(ctx)
	}
}

// candidatesAhead returns candidates of a page that are read in advance, with the headers of
// their blocks and of those with which the range begins and ends.
func (v *View) candidatesAhead(ctx context.Context, found paging.Candidates, r paging.Range) paging.Candidates {
	if !v.blocks.Ahead() {
		return found
	}
	return &paging.Ahead{Candidates: found, Most: r.Size, Read: func(blocks []paging.Found) {
		wants, left := v.blocks.Wants(), r.Size+1 // the last one is where the next page begins
		wants.Header(r.Begin.Block)
		wants.Header(r.To)
		for _, b := range blocks {
			positions := b.Positions
			for b.Block == r.Begin.Block && len(positions) > 0 && uint64(positions[0]) < r.Begin.Position {
				positions = positions[1:]
			}
			positions = positions[:min(left, len(positions))]
			left -= len(positions)
			wants.Header(b.Block)
			wants.Events(b.Block, positions...)
		}
		wants.Read(ctx)
	}}
}

// ReadAhead reads a block's header and transactions.
func (v *View) ReadAhead(ctx context.Context, number uint64) {
	if !v.blocks.Ahead() {
		return
	}
	wants := v.blocks.Wants()
	wants.Header(number)
	wants.Transactions(number)
	wants.Read(ctx)
}

// readEventsAhead reads the events of a transaction.
func readEventsAhead(ctx context.Context, blocks *archive.Reader, receipt *Receipt) {
	if !blocks.Ahead() || receipt.EventCount == 0 {
		return
	}
	wants := blocks.Wants()
	wants.EventRange(receipt.Block.Number, receipt.FirstEvent, receipt.EventCount)
	wants.Read(ctx)
}
