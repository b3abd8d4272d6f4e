package gateway

import (
	"context"
	"sync"

	"ashlar/account"
	"ashlar/jsonrpc"
)

// streams are the subscriptions of one connection.
type streams struct {
	max int

	mu    sync.Mutex
	byID  map[string]context.CancelFunc // guarded by mu; made when first needed
	rules *account.Rules                // guarded by mu: of the key, as those in byID began
}

// add gives a stream its ID, and the context that it is to run in. All streams of a
// connection have begun under the same rules of its key: it ends when they change.
func (s *streams) add(parent context.Context, rules *account.Rules) (id string, ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) == 0 {
		s.rules = rules
	} else if !s.rules.AllowsSameCalls(rules) {
		return "", nil, &jsonrpc.Error{Code: jsonrpc.CodeForbidden, Message: reasonRules}
	}
	if len(s.byID) >= s.max {
		return "", nil, jsonrpc.Errorf(jsonrpc.CodeLimitExceeded, "too many subscriptions: expected at most %d on one connection", s.max)
	}
	if s.byID == nil {
		s.byID = make(map[string]context.CancelFunc)
	}
	id = jsonrpc.NewID()
	ctx, s.byID[id] = context.WithCancel(parent)
	return id, ctx, nil
}

// allowed says whether all streams might have begun under the rules too.
func (s *streams) allowed(rules *account.Rules) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID) == 0 || s.rules.AllowsSameCalls(rules)
}

// Stop implements jsonrpc.Notifier.
func (s *streams) Stop(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel, ok := s.byID[id]
	if ok {
		cancel()
		delete(s.byID, id)
	}
	return ok
}

// notifier is the jsonrpc.Notifier of the calls of one message. It holds back what
// they start until the message has been answered.
type notifier struct {
	*streams
	socket *socket
	rules  *account.Rules // of the key, as the message was let through

	mu      sync.Mutex
	waiting []func() // guarded by mu
}

// Start implements jsonrpc.Notifier.
func (n *notifier) Start(stream jsonrpc.Stream) (string, error) {
	id, ctx, err := n.add(n.socket.ctx, n.rules)
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, func() {
		defer n.Stop(id)
		n.socket.refused(stream(ctx, id, n.socket.send))
	})
	return id, nil
}

// answered lets what was started run.
func (n *notifier) answered() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, run := range n.waiting {
		n.socket.running.Go(run)
	}
	n.waiting = nil
}
