package api

import (
	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"

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
	bytes     int // of the addresses and topics of all, including joiners
	maxBytes  int
}

type logSubscriber struct {
	*feed.Subscriber
	watchedLogs
	asked  logFilter
	joined bool // else it is a joiner
}

type logSet map[*logSubscriber]struct{}

func newLogSubscribers(maxBytes int) logSubscribers {
	return logSubscribers{byAddress: make(map[common.Address]logSet), byTopic: make(map[common.Hash]logSet), any: make(logSet), maxBytes: maxBytes}
}

// checkLimit returns an error if the addresses and topics of another subscriber would
// exceed the limit.
func (l *logSubscribers) checkLimit(filter *logFilter) error {
	if l.bytes+filter.bytes() > l.maxBytes {
		return &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "too many subscriptions: expected fewer addresses and topics in them, or try again later"}
	}
	return nil
}

// reserve counts a subscriber that waits to join. It ends with remove, whether or not
// the subscriber was added.
func (l *logSubscribers) reserve(s *logSubscriber) { l.bytes += s.asked.bytes() }

func (l *logSubscribers) add(s *logSubscriber) {
	s.joined = true
	l.count++
	switch {
	case len(s.asked.addresses) > 0:
		for _, address := range s.asked.addresses {
			put(l.byAddress, address, s)
		}
	case s.asked.hasFirstTopic():
		for _, topic := range s.asked.topics[0] {
			put(l.byTopic, topic, s)
		}
	default:
		l.any[s] = struct{}{}
	}
}

func (l *logSubscribers) remove(s *logSubscriber) {
	l.bytes -= s.asked.bytes()
	if !s.joined {
		return
	}
	l.count--
	for _, address := range s.asked.addresses {
		take(l.byAddress, address, s)
	}
	if s.asked.hasFirstTopic() {
		for _, topic := range s.asked.topics[0] {
			take(l.byTopic, topic, s)
		}
	}
	delete(l.any, s)
}

func put[K comparable](sets map[K]logSet, key K, s *logSubscriber) {
	if sets[key] == nil {
		sets[key] = make(logSet)
	}
	sets[key][s] = struct{}{}
}

func take[K comparable](sets map[K]logSet, key K, s *logSubscriber) {
	if delete(sets[key], s); len(sets[key]) == 0 {
		delete(sets, key)
	}
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
	for s := range set {
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
	for s := range set {
		if s.within(number) && s.Match(&log.Log) {
			s.Notify(log.json)
		}
	}
}
