package archive

import (
	"ashlar/history/postings"
	"ashlar/starknet"
)

// IndexedKeys is how many of an event's keys, the first, it can be found by.
const IndexedKeys = 16

// What kinds of terms there are. The kind of the key at position i is termKey + i.
const (
	termAddress = 0
	termKey     = 1
	termEvent   = 0xfe // an address and the first key
	termAny     = 0xff // of every event
)

// AddressTerm is the term of the events that a contract emitted.
func AddressTerm(from starknet.Felt) postings.Term { return postings.TermOf(termAddress, from[:]) }

// KeyTerm is the term of the events whose key at a position, below IndexedKeys, has that value.
func KeyTerm(position int, key starknet.Felt) postings.Term {
	return postings.TermOf(termKey+byte(position), key[:])
}

// EventTerm is the term of the events that a contract emitted whose first key has that
// value: of one kind of event of one contract, which is what is asked for most. Either
// term alone may be in every block, and the two of them seldom at the same event.
func EventTerm(from, first starknet.Felt) postings.Term {
	return postings.TermOf(termEvent, append(from[:], first[:]...))
}

// AnyTerm is the term of all events.
func AnyTerm() postings.Term { return postings.TermOf(termAny, nil) }

// blockPostings is where the terms of a block's events occur.
func blockPostings(block *starknet.Block) *postings.Block {
	found, any := postings.NewBlock(), AnyTerm()
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
