package gateway

import (
	"sync/atomic"
	"time"

	"ashlar/account"
)

// check returns the connection's key. reason is not empty if the key is no longer admitted,
// or its rules or the network's no longer allow the connection's streams.
func (s *socket) check(settings *settings, network *served) (key *account.Key, reason string) {
	key, ok := s.handler.keys.Check(s.key)
	if !ok || key.Guarded && !proves(key, s.request) {
		return nil, reasonRevoked
	}
	if key.Rules != nil {
		if r := settings.allowed(key.Rules, s.request, network); r != nil {
			s.handler.refusals.count(r.reason)
			settings.countRefused(key, network, originOf(s.request), r)
			return nil, r.err.Message
		}
	}
	if reason := s.streams.forbidden(key.Rules, network.gate); reason != "" {
		return nil, reason
	}
	return key, ""
}

// inspect ends the connection if its key has ended or no longer allows it, its network is no
// longer served, it is idle, or it takes too long over a message. It pings a client that has been
// silent. It does not wait for the network.
func (s *socket) inspect(settings *settings, now time.Time) {
	if s.receiving.over(now, bodyTime) || s.writing.over(now, writeTime) {
		s.running.Go(func() { _ = s.conn.CloseNow() }) // readers and writers get the error
		return
	}
	if s.ending.Load() {
		return
	}
	network := settings.networks.byName[s.network].at(s.version)
	if network == nil {
		if s.leaving.CompareAndSwap(false, true) {
			s.running.Go(func() { s.drain(s.base(), reasonUnserved) })
		}
		return
	}
	key, reason := s.check(settings, network)
	if reason != "" {
		s.end(closeKey, reason)
		return
	}
	s.renewPayer(settings, key)
	if now.Sub(time.Unix(0, s.used.Load())) >= settings.sockets.Idle {
		s.end(closeGone, reasonIdle)
		return
	}
	// No ping while a message is written, which has a time limit of its own: the library ends the
	// connection if a ping is not written within 5 seconds, such as behind a frame of writeDeflated.
	silent := now.Sub(time.Unix(0, s.heard.Load())) >= settings.sockets.Ping
	if silent && !s.writing.running() && s.pinging.CompareAndSwap(false, true) {
		s.running.Go(func() { s.ping(settings.sockets.Ping) })
	}
}

// stopwatch holds the start of an operation with a time limit, in Unix nanoseconds; 0 if
// none is in progress. The sweep over all connections reads it, so that messages need no
// timers.
type stopwatch struct{ began atomic.Int64 }

func (w *stopwatch) start() { w.began.Store(time.Now().UnixNano()) }
func (w *stopwatch) stop()  { w.began.Store(0) }

// running reports whether an operation is in progress.
func (w *stopwatch) running() bool { return w.began.Load() != 0 }

// over reports whether the operation has taken longer than most.
func (w *stopwatch) over(now time.Time, most time.Duration) bool {
	began := w.began.Load()
	return began != 0 && now.Sub(time.Unix(0, began)) > most
}
