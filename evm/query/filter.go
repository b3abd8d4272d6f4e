package query

import (
	"slices"

	"ashlar/evm/archive"
	"ashlar/history/postings"

	"github.com/ethereum/go-ethereum/common"
)

// Filter selects logs.
type Filter struct {
	From, To uint64 // block range, inclusive

	// Addresses are the accepted addresses of a log; empty accepts any.
	Addresses []common.Address
	// Topics are the accepted topics at each position; an empty set accepts any topic. A
	// log with fewer topics than len(Topics) does not match.
	Topics [][]common.Hash
}

// criteria is a normalized filter: each set is sorted and without duplicates.
type criteria struct {
	addresses []common.Address
	topics    [][]common.Hash
	// constrained is the number of topics that the filter's terms imply. The positions
	// after it accept any topic.
	constrained int
}

func (f *Filter) criteria() *criteria {
	c := &criteria{addresses: sortedSet(f.Addresses, common.Address.Cmp)}
	if len(f.Topics) > 0 {
		c.topics = make([][]common.Hash, len(f.Topics))
	}
	for i, allowed := range f.Topics {
		if len(allowed) > 0 {
			c.topics[i] = sortedSet(allowed, common.Hash.Cmp)
			c.constrained = i + 1
		}
	}
	return c
}

// sortedSet returns the distinct values of set in order. It may return set itself.
func sortedSet[T comparable](set []T, compare func(a, b T) int) []T {
	if len(set) < 2 {
		return set
	}
	set = slices.Clone(set)
	slices.SortFunc(set, compare)
	return slices.Compact(set)
}

// Matcher matches single logs against the addresses and topics of a filter, regardless of
// the block range. It is safe for concurrent use.
type Matcher struct{ criteria *criteria }

// Matcher returns the filter's matcher. The filter must not be modified afterwards.
func (f *Filter) Matcher() Matcher { return Matcher{f.criteria()} }

// Match reports whether a log's address and topics match.
func (m Matcher) Match(log *archive.Log) bool { return m.criteria.match(log) }

// needsTopicCount reports whether logs with all of the filter's terms may have too few topics.
func (c *criteria) needsTopicCount() bool { return c.constrained < len(c.topics) }

// hasTopics reports whether a log has a topic at each of the filter's positions.
func (c *criteria) hasTopics(log *archive.Log) bool {
	return len(log.Topics) >= len(c.topics)*common.HashLength
}

// match reports whether a log matches.
func (c *criteria) match(log *archive.Log) bool {
	if !c.hasTopics(log) {
		return false
	}
	if len(c.addresses) > 0 && !contains(c.addresses, log.Address, common.Address.Cmp) {
		return false
	}
	for i, allowed := range c.topics {
		topic := common.Hash(log.Topics[i*common.HashLength : (i+1)*common.HashLength])
		if len(allowed) > 0 && !contains(allowed, topic, common.Hash.Cmp) {
			return false
		}
	}
	return true
}

func contains[T comparable](sorted []T, value T, compare func(a, b T) int) bool {
	if len(sorted) == 1 {
		return sorted[0] == value
	}
	_, ok := slices.BinarySearchFunc(sorted, value, compare)
	return ok
}

// terms returns the terms of each of the filter's sets. A log matches if it has a term of
// every set. There are no sets if the filter accepts any log.
func (c *criteria) terms() [][]postings.Term {
	groups := make([][]postings.Term, 0, 1+len(c.topics))
	// Event arguments are usually the rarest, followed by the contract and then the event
	// signature.
	for position := len(c.topics) - 1; position > 0; position-- {
		groups = appendTerms(groups, c.topics[position], func(topic common.Hash) postings.Term { return archive.TopicTerm(position, topic) })
	}
	groups = appendTerms(groups, c.addresses, archive.AddressTerm)
	if len(c.topics) > 0 {
		groups = appendTerms(groups, c.topics[0], func(topic common.Hash) postings.Term { return archive.TopicTerm(0, topic) })
	}
	// Small sets are cheaper to look up than large ones, and often more selective.
	slices.SortStableFunc(groups, func(a, b []postings.Term) int { return len(a) - len(b) })
	return groups
}

// appendTerms appends the terms of a set unless it is empty.
func appendTerms[T any](groups [][]postings.Term, set []T, term func(T) postings.Term) [][]postings.Term {
	if len(set) == 0 {
		return groups
	}
	terms := make([]postings.Term, len(set))
	for i, value := range set {
		terms[i] = term(value)
	}
	return append(groups, terms)
}
