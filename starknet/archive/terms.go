package archive

import (
	"ashlar/history/postings"
	"ashlar/starknet"
)

// IndexedKeys is how many of an event's first keys are indexed.
const IndexedKeys = 16

// Kinds of terms. The kind of the key at position i is termKey + i.
const (
	termAddress = 0
	termKey     = 1
	termEvent   = 0xfe // address and first key
	termAny     = 0xff // any event
)

// AddressTerm returns the term of events emitted by a contract.
func AddressTerm(from starknet.Felt) postings.Term { return postings.TermOf(termAddress, from[:]) }

// KeyTerm returns the term of events with a key at a position, which must be below IndexedKeys.
func KeyTerm(position int, key starknet.Felt) postings.Term {
	return postings.TermOf(termKey+byte(position), key[:])
}

// EventTerm returns the term of events emitted by a contract with a given first key: one kind of
// event of one contract, the most common filter. Each of the two terms alone may occur in every
// block, though rarely both at the same event.
func EventTerm(from, first starknet.Felt) postings.Term {
	return postings.TermOf(termEvent, append(from[:], first[:]...))
}

// AnyTerm returns the term of all events.
func AnyTerm() postings.Term { return postings.TermOf(termAny, nil) }

// blockPostings returns the postings of a block's events.
func blockPostings(block *starknet.Block) *postings.Block[postings.Term] {
	found, any := postings.NewBlock[postings.Term](), AnyTerm()
	var position uint64
	for i := range block.Transactions {
		for _, event := range block.Transactions[i].Receipt.Events {
			found.Add(any, position)
			found.Add(AddressTerm(event.From), position)
			for at, key := range event.Keys[:min(len(event.Keys), IndexedKeys)] {
				found.Add(KeyTerm(at, key), position)
			}
			if len(event.Keys) > 0 {
				found.Add(EventTerm(event.From, event.Keys[0]), position)
			}
			position++
		}
	}
	return found
}
