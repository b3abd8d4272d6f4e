package gateway

import (
	"context"
	"sync"
	"time"
)

// What holds for connections where Config leaves a value at zero.
const (
	DefaultSockets        = 20_000
	DefaultSocketsEach    = DefaultSockets / 4
	DefaultSocketInFlight = 64
	DefaultSocketStreams  = 100
	DefaultSocketQueue    = 1024
	DefaultSocketBytes    = 64 << 20
	DefaultSocketIdle     = time.Hour
	DefaultSocketPing     = 30 * time.Second
)

// sweepTime is how often open connections are looked at. A key that is revoked is
// cut off within that time.
const sweepTime = 500 * time.Millisecond

// SocketLimits bound WebSocket connections. Zero values mean the defaults.
type SocketLimits struct {
	Open       int           // connections at a time
	Each       int           // the same of one account, or of a key without one
	InFlight   int           // messages of one connection that are not answered yet; more wait unread
	Streams    int           // subscriptions of one connection
	Queue      int           // messages of streams that wait to be sent on one connection
	QueueBytes int           // of answers and messages that wait to be sent on one connection
	Idle       time.Duration // without a message in either direction
	Ping       time.Duration // without a sign of life, after which the client is asked for one, and again until it is given up
}

func (l SocketLimits) withDefaults() SocketLimits {
	for _, value := range []struct {
		field    *int
		standard int
	}{
		{&l.Open, DefaultSockets}, {&l.Each, DefaultSocketsEach}, {&l.InFlight, DefaultSocketInFlight}, {&l.Streams, DefaultSocketStreams},
		{&l.Queue, DefaultSocketQueue}, {&l.QueueBytes, DefaultSocketBytes},
	} {
		if *value.field == 0 {
			*value.field = value.standard
		}
	}
	if l.Idle == 0 {
		l.Idle = DefaultSocketIdle
	}
	if l.Ping == 0 {
		l.Ping = DefaultSocketPing
	}
	return l
}

// sockets are the connections that are open. One goroutine, in run, looks after
// all of them, so that an idle one costs no more than its buffers and its reader.
type sockets struct {
	handler *Handler

	mu       sync.Mutex
	taken    int                  // guarded by mu: places of connections, open or about to be
	byHolder map[holder]int       // guarded by mu: the same of each
	open     map[*socket]struct{} // guarded by mu
	stopping bool                 // guarded by mu: no more are added
	none     chan struct{}        // closed once stopping, when none is open
}

func newSockets(h *Handler) *sockets {
	return &sockets{handler: h, byHolder: make(map[holder]int), open: make(map[*socket]struct{}), none: make(chan struct{})}
}

// count is how many are open.
func (c *sockets) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// reserve takes a place for a connection, or says why there is none. The place must be
// released.
func (c *sockets) reserve(who holder, limits SocketLimits) *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopping || c.taken >= limits.Open:
		return busy(RefusedSocket)
	case c.byHolder[who] >= limits.Each:
		return tooManySockets(limits.Each)
	}
	c.taken++
	c.byHolder[who]++
	return nil
}

func (c *sockets) release(who holder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken--
	if c.byHolder[who]--; c.byHolder[who] == 0 {
		delete(c.byHolder, who)
	}
}

// add takes in a connection that has a place, or says that the server stops.
func (c *sockets) add(s *socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.open[s] = struct{}{}
	}
	return !c.stopping
}

// remove forgets a connection. Nothing is begun for it by others afterwards.
func (c *sockets) remove(s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, s)
	if c.stopping && len(c.open) == 0 {
		close(c.none)
	}
}

// run looks after the connections until ctx is done.
func (c *sockets) run(ctx context.Context) {
	tick := time.NewTicker(sweepTime)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.sweep(now)
		case <-ctx.Done():
			return
		}
	}
}

// sweep ends connections whose key has ended or does not allow them any more, that are
// idle or that take too long over a message, and asks those that have been silent whether
// they are still there.
func (c *sockets) sweep(now time.Time) {
	settings := c.handler.current.Load()
	limits := settings.sockets
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.open {
		heard := now.Sub(time.Unix(0, s.heard.Load()))
		if s.receiving.over(now, bodyTime) || s.writing.over(now, writeTime) {
			s.running.Go(func() { _ = s.conn.CloseNow() }) // its reader or writer gets the error
		} else if s.ending.Load() {
			continue
		} else if key, reason := s.check(settings, settings.networks.byName[s.network]); reason != "" {
			s.end(closeKey, reason)
		} else if s.renewPayer(settings, key); now.Sub(time.Unix(0, s.used.Load())) >= limits.Idle {
			s.end(closeGone, reasonIdle)
		} else if heard >= limits.Ping && s.pinging.CompareAndSwap(false, true) {
			s.running.Go(func() { s.ping(limits.Ping) })
		}
	}
}

// drain takes no more connections and ends those that are open, each once its
// requests are answered. It returns when all have ended, or with ctx's error. It
// must be called at most once.
func (c *sockets) drain(ctx context.Context) error {
	c.mu.Lock()
	c.stopping = true
	if len(c.open) == 0 {
		close(c.none)
	}
	for s := range c.open {
		s.running.Go(func() { s.drain(ctx) })
	}
	c.mu.Unlock()
	select {
	case <-c.none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
