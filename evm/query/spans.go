package query

import (
	"context"
	"errors"

	"ashlar/evm/archive"
	"ashlar/history/postings"
)

// span is a range of blocks whose logs are found in one way.
type span struct {
	first, last uint64
	indexed     bool // by the index, else by the blooms of headers
}

// spans splits a range of blocks into those whose logs are indexed and those that are read from
// other nodes:
//
//	0 ... first stored ... last stored ... settled branch ... head
//	blooms |         index             |  blooms  |   index
//
// On a branch of executed blocks the second range of blooms is empty. The first stored block may be one of
// the branch, which has an index of its own: the window has moved since the branch was taken.
func (v *View) spans(from, to uint64) (all []span) {
	if !v.history.Sourced() {
		return []span{{from, to, true}}
	}
	first, last, branch := v.history.Extent().Blocks, v.head.Number, v.head.Number
	if settled, ok := v.chain.archive.Settled(); v.branch != nil {
		branch = v.branch.Settled().Number
		last = branch
		if ok {
			last = min(branch, settled.Number)
		}
	}
	parts := []span{{first, last, true}, {max(first, last+1), branch, false}, {branch + 1, v.head.Number, true}}
	if first > 0 {
		parts = append([]span{{0, min(first-1, branch), false}}, parts...)
	}
	for _, s := range parts {
		s.first, s.last = max(s.first, from), min(s.last, to)
		if s.first <= s.last {
			all = append(all, s)
		}
	}
	return all
}

// candidates returns the logs in the blocks from to to that have a term of each set of the
// criteria. Without sets, it returns all logs, as counted in receipts. If exact, logs with too
// few topics are left out.
func (v *View) candidates(ctx context.Context, wanted *criteria, from, to uint64, receipts *archive.ReceiptsReader, exact bool) (candidates, error) {
	var parts spanned
	for _, s := range v.spans(from, to) {
		part, err := v.candidatesOf(ctx, wanted, s, receipts, exact)
		if err != nil {
			return nil, errors.Join(err, parts.Close())
		}
		parts = append(parts, spanCandidates{part, s})
	}
	if len(parts) == 1 {
		return parts[0].candidates, nil
	}
	return &parts, nil
}

// candidatesOf is candidates for one span.
func (v *View) candidatesOf(ctx context.Context, wanted *criteria, s span, receipts *archive.ReceiptsReader, exact bool) (candidates, error) {
	v.weaken(ctx, s.first)
	if !s.indexed {
		return &bloomLogs{ctx: ctx, view: v, wanted: wanted, to: s.last}, nil
	}
	if v.remote {
		v.weaken(ctx, s.last)
	}
	terms := wanted.terms()
	var found candidates = &allLogs{receipts: receipts, to: s.last}
	if len(terms) > 0 {
		indexed, err := postings.Intersect(v.scan(ctx), v.termsAhead(ctx), terms, s.first, s.last)
		if err != nil {
			return nil, err
		}
		found = indexed
	}
	if exact && wanted.needsTopicCount() {
		found = &enoughTopics{candidates: found, receipts: receipts, wanted: wanted}
	}
	return found, nil
}

// checkMoved returns a [*archive.Pruned] if the history began later than it does now when the
// logs from a block on were looked for: rows of the index may have been removed meanwhile.
func (v *View) checkMoved(before archive.Extent, first uint64) error {
	if now := v.history.Extent().Blocks; v.history.Sourced() && now > before.Blocks && first < now {
		return &archive.Pruned{Number: first, First: now}
	}
	return nil
}

// spanCandidates are the candidates of a span.
type spanCandidates struct {
	candidates
	span span
}

// spanned are the candidates of ascending spans. It implements [paging.Candidates].
type spanned []spanCandidates

func (p *spanned) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	for _, part := range *p {
		if part.span.last < block {
			continue
		}
		at, positions, ok, err := part.Next(max(block, part.span.first), dst)
		if ok || err != nil {
			return at, positions, ok, err
		}
	}
	return 0, dst, false, nil
}

func (p *spanned) Close() error {
	var errs []error
	for _, part := range *p {
		errs = append(errs, part.Close())
	}
	return errors.Join(errs...)
}
