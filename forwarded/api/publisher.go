package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"ashlar/feed"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/limit"

	"golang.org/x/sync/errgroup"
)

// publisher publishes what happens on the network: subscribers are notified at once, filters
// keep it until they are polled. For each move of the head they get first the dropped blocks,
// newest first, then the added ones, oldest first. If none was added, they get the head once more,
// without its logs: nothing else would show that the chain ends there.
//
// The head moves before the move is published. A client that subscribes in between may know
// the new blocks already, so it gets the updates from its own view of the chain to the next head
// that is published, see [start].
type publisher struct {
	chain  source
	log    *slog.Logger
	polled *feed.Filters[*polledFilter]
	blocks *feed.Journal[*update]
	joins  *feed.Journal[[][]*update] // of each round, the updates for filters that join: a set for each view
	held   *limit.Ledger              // memory of log subscribers, by caller
	joined chan struct{}              // has room for one; receives when a client has begun to watch logs

	mu        sync.Mutex                       // held while a block is published, so that nobody joins meanwhile
	published *forwarded.View                  // guarded by mu: everything up to its head is published
	round     uint64                           // guarded by mu: the number of the last one
	busy      bool                             // guarded by mu: a round is under way
	subs      map[*feed.Subscriber]*subscriber // guarded by mu
	filters   int                              // guarded by mu: polled filters, including any that were removed since the last sweep

	// Only the publishing goroutine uses the fields below.
	logs  recentLogs
	stuck time.Time // since when the head's move cannot be published; zero if it can
}

// source is the chain that is published, a [query.Chain].
type source interface {
	View(ctx context.Context) (*forwarded.View, error)
	Present() *forwarded.View
	Logs(ctx context.Context, view *forwarded.View, f *query.Filter, limit int, found func(*query.Log) error) error
}

// subscriber is a subscription to heads, or to logs.
type subscriber struct {
	*feed.Subscriber
	watched *watchedLogs // nil: heads
	start
}

// update is one block that was added or dropped.
type update struct {
	block   *forwarded.Block
	dropped bool
	again   bool // the head went back to it; its logs were published before
	round   uint64
	head    []byte      // of an added block, for subscribers to heads
	logs    []query.Log // with the member removed as it is now
	bytes   int
}

func newPublisher(chain source, config Config) *publisher {
	limits, now := config.Filters.WithDefaults(), config.Now
	if now == nil {
		now = time.Now
	}
	return &publisher{
		chain: chain, log: cmp.Or(config.Log, slog.Default()), polled: feed.NewFilters[*polledFilter](limits, now),
		blocks: feed.NewJournal[*update](limits.Bytes, limits.Unread, now), joins: feed.NewJournal[[][]*update](limits.Bytes, limits.Unread, now),
		held: limit.NewLedger(limits.Bytes), joined: make(chan struct{}, 1), subs: make(map[*feed.Subscriber]*subscriber), logs: newRecentLogs(limits.Bytes),
	}
}

const (
	expireEvery = 15 * time.Second // between removals of expired filters
	retryPause  = time.Second      // between tries to publish the same move
	// patience is for how long a move that cannot be published is tried. It is longer than it
	// takes until a head that no node has any more is replaced.
	patience = time.Minute
)

// Run notifies subscribers and fills filters until ctx is done.
func (a *API) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for {
			changed := a.chain.Changed()
			var again <-chan time.Time
			if !a.publisher.publish(ctx) {
				again = time.After(retryPause)
			}
			a.publisher.remember(ctx)
			select {
			case <-changed:
			case <-again:
			case <-a.publisher.joined:
			case <-ctx.Done():
				return nil
			}
		}
	})
	group.Go(func() error {
		tick := time.NewTicker(expireEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				a.publisher.expire()
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

func (p *publisher) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filters = p.polled.Expire()
	p.blocks.Expire()
	p.joins.Expire()
}

// publish publishes the move of the head since the last call. It returns false if it is to be
// called again, because nodes did not say what is in the new blocks: they may have dropped
// them already, and then the next head is published instead.
func (p *publisher) publish(ctx context.Context) (done bool) {
	r := p.startRound()
	if r == nil {
		p.logs.clear()
		p.stuck = time.Time{}
		return true
	}
	err := r.compare()
	if err == nil {
		why := p.fetch(ctx, r)
		switch {
		case why == nil:
		case !errors.Is(why, errLogBytes) && p.postpone(why, r):
			return false
		case ctx.Err() == nil:
			p.dropLogs(why, func(s *start) bool { return r.number > s.round })
			r.watchLogs = false
		}
		err = p.publishRound(ctx, r)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Error("the changes are not known: dropping all subscriptions and filters", "from", r.from.Head().Ref, "to", r.to.Head().Ref, "error", err)
		p.dropAll()
	}
	p.stuck = time.Time{}
	p.advance(r.to)
	return true
}

// postpone ends a round that has published nothing, and reports whether it is to be tried
// again, as another round.
func (p *publisher) postpone(why error, r *round) bool {
	if p.stuck.IsZero() {
		p.stuck = time.Now()
		p.log.Warn("the new head is not published yet", "head", r.to.Head().Ref, "because", why)
	}
	if time.Since(p.stuck) > patience {
		return false
	}
	p.logs.keepOf(slices.AppendSeq([]*forwarded.View{r.from, r.to}, maps.Keys(r.joining))...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
	return true
}

// advance records that everything up to a view is published.
func (p *publisher) advance(to *forwarded.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published, p.busy = to, false
	p.logs.trim(to)
}

// complete adds to an update what clients get.
func (p *publisher) complete(ctx context.Context, r *round, u *update) (err error) {
	if !u.dropped {
		if u.head, err = encodeHead(u.block); err != nil {
			return fmt.Errorf("encode block %s: %w", u.block.Ref, err)
		}
	}
	u.bytes = updateBytes + len(u.head)
	if r.watchLogs && !u.again {
		return p.addLogs(ctx, r.to, u)
	}
	return nil
}

// publishUpdate publishes one block. Filters get it first, so that a client that was notified
// finds it in its filters too.
func (p *publisher) publishUpdate(u *update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filters > 0 {
		p.blocks.Append(u, u.bytes)
	}
	for _, s := range p.subs {
		if s.wants(u) {
			s.notify(u)
		}
	}
}

// notify sends the client what it selects from an update.
func (s *subscriber) notify(u *update) {
	switch {
	case s.watched == nil && !u.dropped:
		s.Notify(u.head)
	case s.watched != nil && s.watched.within(u.block.Number):
		for i := range u.logs {
			if s.watched.Match(&u.logs[i]) {
				s.Notify(u.logs[i].JSON)
			}
		}
	}
}

// updateBytes is the memory of an update without its logs.
const updateBytes = 256

// encodeHead returns what subscribers to newHeads get: the members of the block's header.
func encodeHead(b *forwarded.Block) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b.JSON, &members); err != nil {
		return nil, err
	}
	for _, name := range []string{"transactions", "uncles", "withdrawals", "size", "totalDifficulty"} {
		delete(members, name)
	}
	return json.Marshal(members)
}

// dropLogs ends those subscriptions to logs and filters for logs whose beginning matches.
func (p *publisher) dropLogs(why error, matches func(*start) bool) {
	p.log.Error("logs are not known: dropping subscriptions and filters for logs", "error", why)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polled.RemoveFunc(func(f *polledFilter) bool { return f.watched != nil && matches(&f.start) })
	for _, s := range p.subs {
		if s.watched != nil && matches(&s.start) {
			s.End()
		}
	}
}

// dropAll ends all subscriptions and filters.
func (p *publisher) dropAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocks.Break()
	p.joins.Break()
	p.polled.Clear()
	p.filters = 0
	for s := range p.subs {
		s.End()
	}
}

// begin returns where a client begins that subscribes now. mu is held.
func (p *publisher) begin() start {
	s, view := start{round: p.round}, p.chain.Present()
	if view == nil {
		return s
	}
	if !p.busy && (len(p.subs)+p.filters == 0 || p.published == nil) {
		p.published = view // nothing was published for anybody else
	}
	if p.busy || p.published.Head().Hash != view.Head().Hash {
		s.view = view
	}
	return s
}

// subscribe starts a subscription to heads, or to the logs of a filter.
func (p *publisher) subscribe(ctx context.Context, watched *watchedLogs) (id string, err error) {
	caller, bytes := jsonrpc.CallerFrom(ctx), filterBytes
	if watched != nil {
		bytes += watched.asked.Bytes()
	}
	if !p.held.Take(caller, bytes) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "too many subscriptions: expected fewer addresses and topics in them, or try again later"}
	}
	join := func(s *feed.Subscriber) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.subs[s] = &subscriber{s, watched, p.begin()}
		p.watch(watched)
	}
	leave := func(s *feed.Subscriber) {
		p.held.Give(caller, bytes)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subs, s)
	}
	if id, err = feed.Subscribe(ctx, "eth_subscription", join, leave); err != nil {
		p.held.Give(caller, bytes)
	}
	return id, err
}

// watch wakes the publisher after a client has begun to watch logs.
func (p *publisher) watch(watched *watchedLogs) {
	if watched == nil {
		return
	}
	select {
	case p.joined <- struct{}{}:
	default:
	}
}
