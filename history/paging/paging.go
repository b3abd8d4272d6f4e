// Package paging answers questions about events a page at a time, on any family
// of chain. The pages of a question, one after the other, are what it is answered
// without pages: nothing is left out, nothing comes twice, whatever their size
// and whatever blocks arrive between two of them.
//
// A page that is not the last comes with a [Token], from which the next one goes
// on. It holds the place of the next event, so no page but the first can be empty.
package paging

import "ashlar/history/postings"

// Place is where an event is: a block, and its position among the block's events.
type Place struct {
	Block    uint64
	Position uint64
}

// Range says which part of a chain a page is of.
type Range struct {
	Begin Place  // nothing before it
	To    uint64 // the last block
	Size  int    // the most events of the page
	// Resumed says that Begin comes from a token: an event that is asked for is there,
	// or it is a place that no page has ever told.
	Resumed bool
}

// Candidates steps through the blocks that have events which may be asked for.
// [*postings.Intersection] is one.
type Candidates interface {
	// Next returns the first block at or above one that has any, their
	// positions, which ascend, appended to dst; false when there is none.
	Next(block uint64, dst []uint32) (at uint64, positions []uint32, ok bool, err error)
	// Close may be called again.
	Close() error
}

var _ Candidates = (*postings.Intersection)(nil)

// Visitor looks at a candidate, which lies behind all that it was given before,
// and says whether it is asked for. Where onPage is false it is behind the page:
// nothing but the answer is wanted then.
type Visitor func(at Place, onPage bool) (matches bool, err error)

// Walk gives a visitor the candidates of a range, in the order of the chain, until
// the page is full and one more event was found. It returns the place of that one,
// where the next page begins; nil where this page is the last. A range that is resumed
// where no event is asked for is ErrToken: going on there could leave some out.
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

// walk is Walk of a range that begins anywhere.
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
		if block == r.To { // which may be the greatest number
			break
		}
	}
	return nil, nil
}
