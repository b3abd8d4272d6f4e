package gateway

import (
	"context"
	"sync"
	"time"
)

// Defaults of SocketLimits.
const (
	DefaultSockets        = 20_000
	DefaultSocketsEach    = DefaultSockets / 4
	DefaultSocketInFlight = 64
	DefaultSocketStreams  = 100
	DefaultSocketQueue    = 16 << 10 // a block of a busy chain has thousands of logs, which are queued at once
	DefaultSocketBytes    = 64 << 20
	DefaultSocketIdle     = time.Hour
	DefaultSocketPing     = 30 * time.Second
)

// sweepTime is the interval of checks of open connections. A revoked key is disconnected
// within that time.
const sweepTime = 500 * time.Millisecond

// SocketLimits bound WebSocket connections. Zero values mean the defaults.
type SocketLimits struct {
	Open       int           // connections at a time
	Each       int           // connections of one account, or of a key without one
	InFlight   int           // unanswered messages of one connection; more stay unread
	Streams    int           // subscriptions of one connection
	Queue      int           // messages of streams queued on one connection
	QueueBytes int           // unsent bytes of one connection: of answers, above which nothing is read, and of messages of streams
	Idle       time.Duration // without a message in either direction
	Ping       time.Duration // without data from the client; then a ping is sent, and the connection closed if it stays unanswered that long
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

// sockets holds the open connections. One goroutine, in run, checks all of them, so that an
// idle connection costs only its buffers and its reader.
type sockets struct {
	handler *Handler
	workers workers // answer messages

	mu       sync.Mutex
	taken    int                  // guarded by mu: places of open and opening connections
	byHolder map[holder]int       // guarded by mu: taken, per holder
	open     map[*socket]struct{} // guarded by mu
	stopping bool                 // guarded by mu: no more connections are added
	none     chan struct{}        // closed when stopping and none is open
}

func newSockets(h *Handler) *sockets {
	return &sockets{handler: h, byHolder: make(map[holder]int), open: make(map[*socket]struct{}), none: make(chan struct{})}
}

// count returns the number of open connections.
func (c *sockets) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// reserve takes a place for a connection, or returns a refusal. The place must be released.
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

// add adds a connection that has a place. It returns false if the server is stopping.
func (c *sockets) add(s *socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.open[s] = struct{}{}
	}
	return !c.stopping
}

// remove removes a connection. Nothing is started for it afterwards.
func (c *sockets) remove(s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, s)
	if c.stopping && len(c.open) == 0 {
		close(c.none)
	}
}

// run checks the connections until ctx is done.
func (c *sockets) run(ctx context.Context) {
	tick := time.NewTicker(sweepTime)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.sweep(now)
			c.workers.trim()
		case <-ctx.Done():
			return
		}
	}
}

// sweep inspects all open connections.
func (c *sockets) sweep(now time.Time) {
	settings := c.handler.current.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.open {
		s.inspect(settings, now)
	}
}

// drain refuses new connections and ends the open ones, each once its messages in flight
// are answered. It returns when all have ended, or ctx's error. It must be called at most
// once.
func (c *sockets) drain(ctx context.Context) error {
	c.mu.Lock()
	c.stopping = true
	if len(c.open) == 0 {
		close(c.none)
	}
	for s := range c.open {
		if s.leaving.CompareAndSwap(false, true) { // two would each hold places that the other waits for
			s.running.Go(func() { s.drain(ctx, reasonStopping) })
		}
	}
	c.mu.Unlock()
	select {
	case <-c.none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
