package api

import (
	"slices"

	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/limit"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// watchedLogs selects the logs that a subscriber or a polled filter gets.
type watchedLogs struct {
	query.Matcher
	from, to uint64 // blocks, both included
}

// within reports whether the logs of a block are selected.
func (w *watchedLogs) within(number uint64) bool { return w.from <= number && number <= w.to }

// logSubscribers are the subscribers to logs, indexed so that a log is compared with few
// of them: by address, or else by first topic. A subscriber that names neither is
// compared with every log.
type logSubscribers struct {
	byAddress map[common.Address]logSet
	byTopic   map[common.Hash]logSet
	any       logSet
	count     int
	held      *limit.Ledger // memory of all, including joiners and filters of receipts, by caller
}

type logSubscriber struct {
	*feed.Subscriber
	watchedLogs
	asked  parameter.LogFilter
	caller string // holds the bytes
	bytes  int
	joined bool // false for a joiner
}

// logSet is a set of subscribers, in no order. Most sets have one member, for which a
// map would take ten times as much memory.
type logSet []*logSubscriber

func newLogSubscribers(maxBytes int) logSubscribers {
	return logSubscribers{byAddress: make(map[common.Address]logSet), byTopic: make(map[common.Hash]logSet), held: limit.NewLedger(maxBytes)}
}

// reserve returns a subscriber. Its memory counts for the caller until it is removed or
// released. The error means that the caller's limit of memory is reached.
func (l *logSubscribers) reserve(caller string, asked parameter.LogFilter, watched watchedLogs) (*logSubscriber, error) {
	s := &logSubscriber{watchedLogs: watched, asked: asked, caller: caller, bytes: filterBytes + asked.Bytes() + indexBytes(&asked)}
	if !l.held.Take(caller, s.bytes) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "too many subscriptions: expected fewer addresses and topics in them, or try again later"}
	}
	return s, nil
}

// Measured memory of an address or topic of a filter in the index.
const (
	indexAddressBytes = 128
	indexTopicBytes   = 144
)

// indexBytes returns the memory of a filter in the index.
func indexBytes(f *parameter.LogFilter) int {
	switch {
	case len(f.Addresses) > 0:
		return indexAddressBytes * len(f.Addresses)
	case hasFirstTopic(f):
		return indexTopicBytes * len(f.Topics[0])
	}
	return 0
}

// hasFirstTopic reports whether a filter restricts the first topic.
func hasFirstTopic(f *parameter.LogFilter) bool { return len(f.Topics) > 0 && len(f.Topics[0]) > 0 }

// release undoes reserve, for a subscriber that never joined.
func (l *logSubscribers) release(s *logSubscriber) { l.held.Give(s.caller, s.bytes) }

func (l *logSubscribers) add(s *logSubscriber) {
	s.joined = true
	l.count++
	switch {
	case len(s.asked.Addresses) > 0:
		for _, address := range s.asked.Addresses {
			put(l.byAddress, address, s)
		}
	case hasFirstTopic(&s.asked):
		for _, topic := range s.asked.Topics[0] {
			put(l.byTopic, topic, s)
		}
	default:
		l.any = append(l.any, s)
	}
}

func (l *logSubscribers) remove(s *logSubscriber) {
	l.release(s)
	if !s.joined {
		return
	}
	l.count--
	for _, address := range s.asked.Addresses {
		take(l.byAddress, address, s)
	}
	if hasFirstTopic(&s.asked) {
		for _, topic := range s.asked.Topics[0] {
			take(l.byTopic, topic, s)
		}
	}
	l.any = l.any.without(s)
}

// put adds a subscriber to the set of a key. A key that its filter repeats is added once.
func put[K comparable](sets map[K]logSet, key K, s *logSubscriber) {
	set := sets[key]
	if last := len(set) - 1; last < 0 || set[last] != s {
		sets[key] = append(set, s)
	}
}

func take[K comparable](sets map[K]logSet, key K, s *logSubscriber) {
	if set := sets[key].without(s); len(set) > 0 {
		sets[key] = set
	} else {
		delete(sets, key)
	}
}

// without removes a subscriber from the set, if it is there.
func (set logSet) without(s *logSubscriber) logSet {
	i := slices.Index(set, s)
	if i < 0 {
		return set
	}
	last := len(set) - 1
	set[i], set[last] = set[last], nil
	return set[:last]
}

// end ends every subscription.
func (l *logSubscribers) end() {
	for _, set := range l.byAddress {
		set.end()
	}
	for _, set := range l.byTopic {
		set.end()
	}
	l.any.end()
}

func (set logSet) end() {
	for _, s := range set {
		s.End()
	}
}

// notify sends each subscriber the logs that it selects.
func (l *logSubscribers) notify(update *blockUpdate) {
	if l.count == 0 {
		return
	}
	for i := range update.logs {
		log := &update.logs[i]
		l.byAddress[log.Address].notify(log, update.block.Number)
		if len(log.Topics) > 0 {
			l.byTopic[common.Hash(log.Topics[:common.HashLength])].notify(log, update.block.Number)
		}
		l.any.notify(log, update.block.Number)
	}
}

func (set logSet) notify(log *updateLog, number uint64) {
	for _, s := range set {
		if s.within(number) && s.Match(&log.Log) {
			s.Notify(log.json)
		}
	}
}
