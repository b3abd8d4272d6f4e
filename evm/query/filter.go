package query

import (
	"slices"

	"ashlar/evm/archive"
	"ashlar/history/postings"

	"github.com/ethereum/go-ethereum/common"
)

// Filter says which logs are asked for.
type Filter struct {
	From, To uint64 // blocks, both included

	// Addresses are those that a log may have; none means any.
	Addresses []common.Address
	// Topics are, for each position, those that a log may have there; none
	// means any, but there must be one: a log with fewer topics than there are
	// positions here does not match.
	Topics [][]common.Hash
}

// criteria is a filter put in order: without doubles, each set sorted.
type criteria struct {
	addresses []common.Address
	topics    [][]common.Hash
	// constrained is how many topics a log must have for its terms alone to
	// match; further positions of the filter ask for topics of any value.
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

// sortedSet returns the values of set in order, each once. A set of one needs no copy.
func sortedSet[T comparable](set []T, compare func(a, b T) int) []T {
	if len(set) < 2 {
		return set
	}
	set = slices.Clone(set)
	slices.SortFunc(set, compare)
	return slices.Compact(set)
}

// Matcher says of single logs whether a filter asks for them, wherever they stand.
// It may be used from many goroutines at once.
type Matcher struct{ criteria *criteria }

// Matcher returns the filter's matcher. The filter must not be changed afterwards.
func (f *Filter) Matcher() Matcher { return Matcher{f.criteria()} }

// Match says whether a log has an address and topics that the filter asks for.
func (m Matcher) Match(log *archive.Log) bool { return m.criteria.match(log) }

// needsTopicCount says whether logs that match by their terms may still have too few topics.
func (c *criteria) needsTopicCount() bool { return c.constrained < len(c.topics) }

// hasTopics says whether a log has a topic at each of the filter's positions.
func (c *criteria) hasTopics(log *archive.Log) bool {
	return len(log.Topics) >= len(c.topics)*common.HashLength
}

// match says whether a log is asked for.
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

// terms returns the terms of each of the filter's sets: a log matches that has
// a term of every one of them. There are none when the filter allows any log.
func (c *criteria) terms() [][]postings.Term {
	groups := make([][]postings.Term, 0, 1+len(c.topics))
	// Arguments of an event are most often the rarest, then its contract, then
	// the event itself.
	for position := len(c.topics) - 1; position > 0; position-- {
		groups = appendTerms(groups, c.topics[position], func(topic common.Hash) postings.Term { return archive.TopicTerm(position, topic) })
	}
	groups = appendTerms(groups, c.addresses, archive.AddressTerm)
	if len(c.topics) > 0 {
		groups = appendTerms(groups, c.topics[0], func(topic common.Hash) postings.Term { return archive.TopicTerm(0, topic) })
	}
	// Few terms cost less to look at than many, and often rule out more.
	slices.SortStableFunc(groups, func(a, b []postings.Term) int { return len(a) - len(b) })
	return groups
}

// appendTerms appends the terms of a set, if it has any.
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
