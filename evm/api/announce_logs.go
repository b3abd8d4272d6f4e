package api

import (
	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// watchedLogs are the logs that a subscriber or a polled filter asks for.
type watchedLogs struct {
	query.Matcher
	from, to uint64 // blocks, both included
}

// within says whether a block is one of those that logs are asked of.
func (w *watchedLogs) within(number uint64) bool { return w.from <= number && number <= w.to }

// logSubscribers are those who are told of logs. They lie where only logs lead that
// they may have asked for: by address, or else by the first topic; those who name
// neither are asked about every log.
type logSubscribers struct {
	byAddress map[common.Address]logSet
	byTopic   map[common.Hash]logSet
	any       logSet
	count     int
	bytes     int // of what they and newcomers ask for
	maxBytes  int
}

type logSubscriber struct {
	*feed.Subscriber
	watchedLogs
	asked  logFilter
	joined bool // else it is a newcomer
}

type logSet map[*logSubscriber]struct{}

func newLogSubscribers(maxBytes int) logSubscribers {
	return logSubscribers{byAddress: make(map[common.Address]logSet), byTopic: make(map[common.Hash]logSet), any: make(logSet), maxBytes: maxBytes}
}

// room says whether there is room for what a further subscriber asks for.
func (l *logSubscribers) room(filter *logFilter) error {
	if l.bytes+filter.bytes() > l.maxBytes {
		return &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "too many subscriptions: expected fewer addresses and topics in them, or try again later"}
	}
	return nil
}

// admit takes note of a subscriber that is to be added, or removed before.
func (l *logSubscribers) admit(s *logSubscriber) { l.bytes += s.asked.bytes() }

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

// tell tells each subscriber of the logs that it asks for.
func (l *logSubscribers) tell(told *announcement) {
	if l.count == 0 {
		return
	}
	for i := range told.logs {
		log := &told.logs[i]
		l.byAddress[log.Address].tell(log, told.block.Number)
		if len(log.Topics) > 0 {
			l.byTopic[common.Hash(log.Topics[:common.HashLength])].tell(log, told.block.Number)
		}
		l.any.tell(log, told.block.Number)
	}
}

func (set logSet) tell(log *announcedLog, number uint64) {
	for s := range set {
		if s.within(number) && s.Match(&log.Log) {
			s.Tell(log.json)
		}
	}
}
