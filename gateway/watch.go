package gateway

import (
	"context"
	"time"

	"ashlar/account"
)

// maxWatchedCalls is the number of calls of a batch that a watcher is shown.
const maxWatchedCalls = 100

// Watched describes an answered request, which is a call or a batch. It has neither
// parameters nor results, and nothing secret.
type Watched struct {
	Network     string
	Key         account.KeyID
	TraceParent string // the W3C header of that name; may be anything
	Began       time.Time
	Took        time.Duration
	Asked       int // bytes of the request
	Answered    int // bytes of the answer
	Calls       []WatchedCall
	Total       int // number of calls, which may be more than len(Calls)
}

// WatchedCall is one call of a request.
type WatchedCall struct {
	Method string // empty: an unknown one
	Ended  time.Time
	Took   time.Duration
	Code   int // of the error; 0 for success
}

// watch begins to record a request for the watcher.
func (e *exchange) watch(request []byte) (end func(out []byte)) {
	e.watched = &Watched{
		Network: e.network.name, Key: e.key.ID, TraceParent: e.traceParent, Began: time.Now(), Asked: len(request),
	}
	return func(out []byte) {
		w := e.watched
		e.watched = nil
		w.Took, w.Answered = time.Since(w.Began), len(out)
		e.settings.watcher(e, w)
	}
}

// watchCall records a call that has ended.
func (e *exchange) watchCall(method string, took time.Duration, code int) {
	if e.watched == nil {
		return
	}
	if e.watched.Total++; len(e.watched.Calls) < maxWatchedCalls {
		e.watched.Calls = append(e.watched.Calls, WatchedCall{method, time.Now(), took, code})
	}
}

// Watcher is called with every answered request, before the answer is sent.
type Watcher func(context.Context, *Watched)
