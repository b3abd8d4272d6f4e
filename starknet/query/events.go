package query

import (
	"context"
	"slices"

	"ashlar/history/paging"
	"ashlar/history/postings"
	"ashlar/starknet"
	"ashlar/starknet/archive"
)

// Filter selects events.
type Filter struct {
	From []starknet.Felt // accepted contracts; none: any
	// Keys are the accepted keys at each position; an empty set accepts any. There are at
	// most archive.IndexedKeys positions, and the last must not be empty.
	Keys [][]starknet.Felt
}

// Event is an event with its block. It is valid only during the call that it is passed to.
type Event struct {
	archive.Event
	BlockNumber uint64
}

// EventPage calls visit with the events of a page, and returns where the next page begins, as
// [paging.Walk] does. The range must lie within the view's span.
func (v *View) EventPage(ctx context.Context, filter *Filter, r paging.Range, visit func(*Event) error) (next *paging.Place, err error) {
	wanted := filter.sorted()
	scan := func(term postings.Term, from, to uint64) postings.Postings {
		return v.blocks.Postings(ctx, term, from, to)
	}
	terms := wanted.terms()
	found, err := postings.Intersect(scan, v.termsAhead(ctx), terms, r.Begin.Block, r.To)
	if err == nil {
		events := v.blocks.Events(ctx)
		var event Event
		next, err = paging.Walk(v.candidatesAhead(ctx, found, r), r, func(at paging.Place, onPage bool) (matches bool, err error) {
			if event.Event, err = events.Event(at.Block, at.Position); err != nil {
				return false, err
			}
			if matches, err = wanted.match(&event.Event); !matches || !onPage || err != nil {
				return matches, err
			}
			event.BlockNumber = at.Block
			return true, visit(&event)
		})
	}
	if cerr := found.Close(); err == nil {
		err = cerr
	}
	return next, err
}

// sorted returns the filter with each set sorted and without duplicates.
func (f *Filter) sorted() *Filter {
	sorted := &Filter{From: sortedSet(f.From), Keys: make([][]starknet.Felt, len(f.Keys))}
	for i, allowed := range f.Keys {
		sorted.Keys[i] = sortedSet(allowed)
	}
	return sorted
}

// terms returns the terms of each of the filter's sets. An event matches if it has a term of
// every set.
func (f *Filter) terms() [][]postings.Term {
	var sets [][]postings.Term
	// Later keys are usually the rarest.
	for position := len(f.Keys) - 1; position > 0; position-- {
		if allowed := f.Keys[position]; len(allowed) > 0 {
			sets = append(sets, keyTerms(allowed, position))
		}
	}
	sets = append(sets, f.first()...)
	if len(sets) == 0 {
		return [][]postings.Term{{archive.AnyTerm()}}
	}
	// Small sets are cheaper to look up than large ones, and often more selective.
	slices.SortStableFunc(sets, func(a, b []postings.Term) int { return len(a) - len(b) })
	return sets
}

// maxCombined is how many terms of a contract and a first key are looked up. A filter with
// more looks up contracts and keys on their own.
const maxCombined = 1024

// first returns the terms for the contracts and the first keys, combined if possible; none if
// the filter has neither.
func (f *Filter) first() (sets [][]postings.Term) {
	var keys []starknet.Felt
	if len(f.Keys) > 0 {
		keys = f.Keys[0]
	}
	switch {
	case len(f.From) == 0 && len(keys) == 0:
		return nil
	case len(keys) == 0:
		return [][]postings.Term{addressTerms(f.From)}
	case len(f.From) == 0:
		return [][]postings.Term{keyTerms(keys, 0)}
	case len(f.From) > 1 && len(f.From)*len(keys) > maxCombined:
		return [][]postings.Term{addressTerms(f.From), keyTerms(keys, 0)}
	}
	var combined []postings.Term
	for _, from := range f.From {
		for _, key := range keys {
			combined = append(combined, archive.EventTerm(from, key))
		}
	}
	return [][]postings.Term{combined}
}

// addressTerms returns the terms of the accepted contracts.
func addressTerms(from []starknet.Felt) []postings.Term {
	terms := make([]postings.Term, len(from))
	for i, contract := range from {
		terms[i] = archive.AddressTerm(contract)
	}
	return terms
}

// keyTerms returns the terms of the accepted keys at a position.
func keyTerms(allowed []starknet.Felt, position int) []postings.Term {
	terms := make([]postings.Term, len(allowed))
	for i, key := range allowed {
		terms[i] = archive.KeyTerm(position, key)
	}
	return terms
}

// match reports whether an event matches: terms may collide. The filter must be sorted.
func (f *Filter) match(event *archive.Event) (bool, error) {
	if event.Keys.Left() < len(f.Keys) {
		return false, nil
	}
	if len(f.From) > 0 {
		if _, ok := slices.BinarySearchFunc(f.From, event.From, starknet.Felt.Cmp); !ok {
			return false, nil
		}
	}
	keys := event.Keys // a copy: visit reads the event's own
	var key starknet.Felt
	for _, allowed := range f.Keys {
		if _, err := keys.Next(&key); err != nil {
			return false, err
		}
		if len(allowed) == 0 {
			continue
		}
		if _, ok := slices.BinarySearchFunc(allowed, key, starknet.Felt.Cmp); !ok {
			return false, nil
		}
	}
	return true, nil
}
