package eth

import (
	"context"
	"errors"
	"sync"
	"time"

	"ashlar/api/feed"
	"ashlar/query"

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

	mu       sync.Mutex     // held while a block is told, so that nobody begins or ends amid one
	position *query.View    // guarded by mu: up to its head all has been told; nil before there is a block
	heads    subscribers    // guarded by mu: newHeads
	logs     logSubscribers // guarded by mu
	hashes   subscribers    // guarded by mu: newPendingTransactions
	whole    subscribers    // guarded by mu: the same, of whole transactions
	syncing  subscribers    // guarded by mu
	behind   bool           // guarded by mu: what subscribers to syncing were told
	filters  int            // guarded by mu: how many are polled, those that expired but lately included
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
	group.Go(func() error { return a.chain.EachMove(ctx, a.live.announce) })
	group.Go(func() error { return a.live.expire(ctx) })
	if a.chain.Pool() != nil {
		group.Go(func() error { return a.live.followPool(ctx) })
	}
	if a.config.Syncing != nil {
		group.Go(func() error { return a.live.followSync(ctx) })
	}
	return group.Wait()
}

// announce tells what the moves of the head have changed since the last time.
func (a *announcer) announce(ctx context.Context) error {
	view, err := a.api.chain.View()
	if errors.Is(err, query.ErrUnknownBlock) {
		return nil // no block yet
	}
	if err != nil {
		return err
	}
	position := a.skip(view)
	if position == nil {
		return nil
	}
	changes, err := a.api.chain.Changes(ctx, position, view)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if err := a.tell(ctx, change); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.position = view
	a.mu.Unlock()
	return nil
}

// skip moves the position to a view where nobody listens. Otherwise it returns the
// position that is to be left, or nil where there is none.
func (a *announcer) skip(view *query.View) *query.View {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.position == nil || len(a.heads)+a.logs.count+a.filters == 0 {
		a.position = view
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

// begin makes what comes from now on what is told, where nothing was told before. mu
// is held.
func (a *announcer) begin() {
	if a.position == nil {
		a.position, _ = a.api.chain.View() // fails only where there is no block yet
	}
}

// subscribe begins a subscription. Both functions are called between blocks.
func (a *announcer) subscribe(ctx context.Context, join, leave func(*feed.Subscriber)) (id string, err error) {
	between := func(run func(*feed.Subscriber)) func(*feed.Subscriber) {
		return func(s *feed.Subscriber) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.begin()
			run(s)
		}
	}
	return feed.Subscribe(ctx, subscriptionMethod, between(join), between(leave))
}
