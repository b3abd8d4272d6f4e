package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ashlar/evm/query"
	"ashlar/feed"

	"golang.org/x/sync/errgroup"
)

// announcer tells clients what happens on the network: subscribers at once, those
// who poll when they come. What they get leads from the chain as it was when they
// began to the chain as it is: of each change of the head the blocks that were
// dropped, newest first, then those that came, oldest first, each once. A block is
// announced when it can be asked for already.
type announcer struct {
	api     *API
	polled  *feed.Filters[*polledFilter]
	blocks  *feed.Journal[*announcement]       // for polled
	arrived *feed.Journal[*pendingTransaction] // for polled

	mu        sync.Mutex     // held while a block is told, so that nobody joins or leaves amid one
	position  *query.View    // guarded by mu: up to its head all has been told; nil before there is a block
	moving    bool           // guarded by mu: what comes after the position is being told
	newcomers []*newcomer    // guarded by mu: who join once the position is theirs, in the order in which they came
	heads     subscribers    // guarded by mu: newHeads
	logs      logSubscribers // guarded by mu
	hashes    subscribers    // guarded by mu: newPendingTransactions
	whole     subscribers    // guarded by mu: the same, of whole transactions
	syncing   subscribers    // guarded by mu
	behind    bool           // guarded by mu: what subscribers to syncing were told
	filters   int            // guarded by mu: how many are polled, those that expired but lately included
}

// subscribers are those who are told the same.
type subscribers map[*feed.Subscriber]struct{}

func (s subscribers) add(one *feed.Subscriber)    { s[one] = struct{}{} }
func (s subscribers) remove(one *feed.Subscriber) { delete(s, one) }

func (s subscribers) tell(result []byte) {
	for one := range s {
		one.Tell(result)
	}
}

func newAnnouncer(api *API, config Config) *announcer {
	limits, now := config.Filters.WithDefaults(), config.Now
	if now == nil {
		now = time.Now
	}
	return &announcer{
		api:     api,
		polled:  feed.NewFilters[*polledFilter](limits, now),
		blocks:  feed.NewJournal[*announcement](limits.Bytes, limits.Unread, now),
		arrived: feed.NewJournal[*pendingTransaction](limits.Bytes, limits.Unread, now),
		heads:   make(subscribers), logs: newLogSubscribers(limits.Bytes),
		hashes: make(subscribers), whole: make(subscribers), syncing: make(subscribers),
	}
}

// expireEvery is how often filters are looked at that nobody reads any more.
const expireEvery = 15 * time.Second

// Run tells subscribers and filters what happens on the network, until ctx is done.
// It must be called at most once, when the chain has the pool that it is to have.
func (a *API) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return a.chain.EachMove(ctx, func(ctx context.Context) error { a.live.announce(ctx); return nil })
	})
	group.Go(func() error { return a.live.expire(ctx) })
	if a.chain.Pool() != nil {
		group.Go(func() error { return a.live.followPool(ctx) })
	}
	if a.config.Syncing != nil {
		group.Go(func() error { return a.live.followSync(ctx) })
	}
	return group.Wait()
}

// announce tells what the moves of the head have changed since the last time: up to the
// head of each newcomer in turn, and then up to the chain's. Where that cannot be read,
// those who were to be told are let go, and all else goes on.
func (a *announcer) announce(ctx context.Context) {
	for _, view := range a.depart() {
		if err := a.lead(ctx, view); ctx.Err() != nil {
			return
		} else if err != nil {
			slog.Error("subscriptions and filters are ended: what has changed cannot be read", "block", view.Head().Number, "error", err)
			a.lose()
		}
		a.arrive(view)
	}
	a.mu.Lock()
	a.moving = false
	a.mu.Unlock()
}

// depart returns the views to which announcements go on from the position. From then
// on whoever comes is a newcomer.
func (a *announcer) depart() (to []*query.View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	view, err := a.api.chain.View()
	if err != nil { // there is no block yet
		return nil
	}
	a.moving = true
	for _, n := range a.newcomers {
		to = append(to, n.view)
	}
	return append(to, view)
}

// lead tells what leads from the position to a view.
func (a *announcer) lead(ctx context.Context, to *query.View) error {
	position := a.heard()
	if position == nil {
		return nil
	}
	changes, err := a.api.chain.Changes(ctx, position, to)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if err := a.tell(ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// lose lets go of those who are told of blocks: they cannot be told what comes next.
func (a *announcer) lose() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blocks.Break()
	for one := range a.heads {
		one.End()
	}
	a.logs.end()
}

// heard returns the position from which there is something to tell: nil where there is
// none, or where nobody listens.
func (a *announcer) heard() *query.View {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heads)+a.logs.count+a.filters == 0 {
		return nil
	}
	return a.position
}

// tell tells everyone of one block. Filters have it first, so that a client who is
// sent something finds it in its filters too.
func (a *announcer) tell(ctx context.Context, change query.Change) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.logs.count+a.filters > 0 {
		told, err := a.api.announcement(ctx, change)
		if err != nil {
			return err
		}
		if a.filters > 0 {
			a.blocks.Append(told, told.bytes)
		}
		defer a.logs.tell(told)
	}
	if len(a.heads) > 0 && !change.Dropped {
		head, err := encodeHead(ctx, change)
		if err != nil {
			return err
		}
		a.heads.tell(head)
	}
	return nil
}

// expire forgets filters that nobody reads, and what was kept for them.
func (a *announcer) expire(ctx context.Context) error {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.forget()
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *announcer) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.filters = a.polled.Expire()
	a.blocks.Expire()
	a.arrived.Expire()
}

// subscribe begins a subscription. Both functions are called with mu held.
func (a *announcer) subscribe(ctx context.Context, join, leave func(*feed.Subscriber)) (id string, err error) {
	between := func(run func(*feed.Subscriber)) func(*feed.Subscriber) {
		return func(s *feed.Subscriber) {
			a.mu.Lock()
			defer a.mu.Unlock()
			run(s)
		}
	}
	return feed.Subscribe(ctx, subscriptionMethod, between(join), between(leave))
}
