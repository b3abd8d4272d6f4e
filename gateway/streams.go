package gateway

import (
	"bytes"
	"context"
	"sync"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// streamBytes is the memory of a stream without its messages: a goroutine, and its state
// here and in its method.
const streamBytes = 4 << 10

// messageBytes is the memory of a queued message without its text.
const messageBytes = 128

// streams holds the subscriptions of one connection.
type streams struct {
	max     int
	memory  *limit.Budget
	holding *limit.Holding // memory of the connection's account

	mu    sync.Mutex
	byID  map[string]startedStream // guarded by mu; created on first use
	rules *account.Rules           // guarded by mu: the key's rules when the streams in byID started
	gate  *gate                    // guarded by mu: permits the methods of all streams in byID; nil: not known
}

// startedStream is a stream, with the method that started it.
type startedStream struct {
	cancel context.CancelFunc
	method string
}

// add assigns an ID and a context to a stream that a method starts behind a gate. All streams of a
// connection have started under the same rules of its key: the connection ends when they change.
func (s *streams) add(parent context.Context, method string, rules *account.Rules, behind *gate) (id string, ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) == 0 {
		s.rules, s.gate = rules, behind
	} else if !s.rules.AllowsSameCalls(rules) {
		return "", nil, &jsonrpc.Error{Code: jsonrpc.CodeForbidden, Message: reasonRules}
	}
	if len(s.byID) >= s.max {
		return "", nil, jsonrpc.Errorf(jsonrpc.CodeLimitExceeded, "too many subscriptions: expected at most %d on one connection", s.max)
	}
	if !s.memory.Take(s.holding, streamBytes) {
		return "", nil, busy(RefusedMemory).err
	}
	if s.byID == nil {
		s.byID = make(map[string]startedStream)
	}
	if s.gate != behind {
		s.gate = nil
	}
	id = jsonrpc.NewID()
	ctx, cancel := context.WithCancel(parent)
	s.byID[id] = startedStream{cancel, method}
	return id, ctx, nil
}

// any reports whether there is a stream.
func (s *streams) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID) > 0
}

// forbidden returns why a stream could not have started under the given rules and behind a gate, or
// an empty string.
func (s *streams) forbidden(rules *account.Rules, behind *gate) (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) == 0 {
		return ""
	}
	if !s.rules.AllowsSameCalls(rules) {
		return reasonRules
	}
	if s.gate == behind {
		return ""
	}
	for _, started := range s.byID {
		if behind.restricts(started.method, rules) {
			return reasonRestricted
		}
	}
	s.gate = behind
	return ""
}

// Stop implements jsonrpc.Notifier.
func (s *streams) Stop(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	started, ok := s.byID[id]
	if ok {
		started.cancel()
		delete(s.byID, id)
		s.memory.Give(s.holding, streamBytes)
	}
	return ok
}

// notifier is the jsonrpc.Notifier for the calls of one message. Streams started by them
// run once the message has been answered.
type notifier struct {
	*streams
	socket   *socket
	exchange *exchange // of the message, with the key's rules at that time

	mu      sync.Mutex
	waiting []waitingStream // guarded by mu
}

// waitingStream is a stream whose ID the client does not know yet.
type waitingStream struct {
	id  string
	run func()
}

// Start implements jsonrpc.Notifier.
func (n *notifier) Start(stream jsonrpc.Stream) (string, error) {
	socket, series, paying := n.socket, n.exchange.series, n.exchange.payer
	socket.paying.Store(&paying)
	users := n.exchange.network.users
	if !users.Enter() {
		return "", unserved().err
	}
	id, ctx, err := n.add(socket.ctx, n.exchange.method, n.exchange.key.Rules, n.exchange.network.gate)
	if err != nil {
		users.Leave()
		return "", err
	}
	send := func(parts ...[]byte) error {
		if ctx.Err() != nil {
			return errClosed
		}
		return socket.send(series, parts)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, waitingStream{id, func() {
		defer users.Leave()
		defer n.Stop(id)
		if err := stream(ctx, id, send); ctx.Err() == nil {
			socket.refused(err)
		}
	}})
	return id, nil
}

// drop stops the streams whose IDs are in an answer that is not sent.
func (n *notifier) drop(answer []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.waiting {
		if bytes.Contains(answer, []byte(w.id)) {
			n.Stop(w.id)
		}
	}
}

// answered runs the started streams.
func (n *notifier) answered() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.waiting {
		n.socket.running.Go(w.run)
	}
	n.waiting = nil
}

// send queues a message of a stream. It costs one credit, plus one for each further 8 KiB,
// and its memory is charged until it is written. send never waits.
func (s *socket) send(series usage.Series, parts [][]byte) error {
	if s.ending.Load() {
		return errClosed
	}
	m := outgoing{parts: parts}
	size := m.size()
	who, credits := s.paying.Load(), 1+bodyCredits(size)
	if r := who.spendOnMessage(credits); r != nil {
		s.handler.refusals.count(r.reason)
		who.caller.usage.Refused(series, 0, r.cause)
		s.end(closeBusy, r.err.Message)
		return errClosed
	}
	who.caller.usage.Spent(series, credits)
	who.caller.usage.Sent(series, size)
	m.taken = int64(size + messageBytes)
	if !s.out.memory.Take(s.out.holding, m.taken) {
		s.handler.refusals.count(RefusedMemory)
		who.caller.usage.Refused(series, 0, usage.Busy)
		s.end(closeBusy, reasonMemory)
		return errClosed
	}
	first, err := s.out.put(m)
	if err != nil {
		s.out.memory.Give(s.out.holding, m.taken)
		s.refused(err)
		return err
	}
	if first {
		s.running.Go(s.out.drain)
	}
	return nil
}

// renewPayer makes streams pay under the current settings and limits of the key.
func (s *socket) renewPayer(settings *settings, key *account.Key) {
	if !s.streams.any() {
		return
	}
	if paying := settings.payer(key, settings.client(s.request)); paying != *s.paying.Load() {
		s.paying.Store(&paying)
	}
}
