// Package paging splits the events of a query into pages, for any chain family.
// Concatenated, the pages are exactly the unpaged result: nothing is missing or repeated,
// whatever the page size and whatever blocks arrive between pages.
//
// Each page but the last comes with a [Token] for the next. The token holds the place of
// the next event, so only the first page can be empty.
package paging

import "ashlar/history/postings"

// Place is the position of an event: a block, and its index among the block's events.
type Place struct {
	Block    uint64
	Position uint64
}

// Range is the part of a chain that a page covers.
type Range struct {
	Begin Place  // first place
	To    uint64 // last block
	Size  int    // maximum number of events on the page
	// Resumed means that Begin comes from a token, so there must be a matching event at
	// Begin.
	Resumed bool
}

// Candidates iterates over blocks with events that may match. It is implemented by
// [*postings.Intersection].
type Candidates interface {
	// Next finds the first block at or after block with candidates, and appends their
	// ascending positions to dst; ok is false if there is none.
	Next(block uint64, dst []uint32) (at uint64, positions []uint32, ok bool, err error)
	// Close may be called more than once.
	Close() error
}

var _ Candidates = (*postings.Intersection)(nil)

// Visitor is called with each candidate in ascending order and reports whether it matches.
// If onPage is false, the candidate is beyond the page and must not be added to it.
type Visitor func(at Place, onPage bool) (matches bool, err error)

// Walk calls visit with the candidates of a range in the order of the chain, until the page
// is full and one more match was found. It returns the place of that match, where the next
// page begins, or nil if this page is the last. If a range is resumed at a place without a
// match, Walk returns ErrToken: the token was not issued for this filter.
func Walk(candidates Candidates, r Range, visit Visitor) (next *Place, err error) {
	if !r.Resumed {
		return walk(candidates, r, visit)
	}
	begun := false
	next, err = walk(candidates, r, func(at Place, onPage bool) (matches bool, err error) {
		if begun {
			return visit(at, onPage)
		}
		if begun = at == r.Begin; !begun {
			return false, ErrToken
		}
		if matches, err = visit(at, onPage); err == nil && !matches {
			err = ErrToken
		}
		return matches, err
	})
	if err == nil && !begun {
		err = ErrToken
	}
	return next, err
}

// walk is Walk without the check of a resumed range.
func walk(candidates Candidates, r Range, visit Visitor) (next *Place, err error) {
	var positions []uint32
	matched := 0
	for block := r.Begin.Block; block <= r.To; block++ {
		var ok bool
		block, positions, ok, err = candidates.Next(block, positions[:0])
		if !ok || err != nil || block > r.To {
			return nil, err
		}
		for _, position := range positions {
			at := Place{Block: block, Position: uint64(position)}
			if block == r.Begin.Block && at.Position < r.Begin.Position {
				continue
			}
			matches, err := visit(at, matched < r.Size)
			if err != nil {
				return nil, err
			}
			if matches && matched == r.Size {
				return &at, nil
			}
			if matches {
				matched++
			}
		}
		if block == r.To { // avoids an overflow of block+1
			break
		}
	}
	return nil, nil
}
