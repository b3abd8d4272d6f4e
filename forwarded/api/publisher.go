package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"ashlar/feed"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/limit"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// publisher publishes what happens on the network: subscribers are notified at once, filters
// keep it until they are polled. For each move of the head they get first the dropped blocks,
// newest first, then the added ones, oldest first.
//
// The head moves before the move is published. A client that subscribes in between may know
// the new blocks already, so it gets only those that its own view of the chain lacks.
type publisher struct {
	chain  source
	polled *feed.Filters[*polledFilter]
	blocks *feed.Journal[*update]
	held   *limit.Ledger // memory of log subscribers, by caller
	joined chan struct{} // has room for one; receives when a client has begun to watch logs

	mu        sync.Mutex                       // held while a block is published, so that nobody joins meanwhile
	published *forwarded.View                  // guarded by mu: everything up to its head is published
	round     uint64                           // guarded by mu: of publishing
	busy      bool                             // guarded by mu: a round is under way
	subs      map[*feed.Subscriber]*subscriber // guarded by mu
	filters   int                              // guarded by mu: polled filters, including any that expired since the last sweep

	// Only the publishing goroutine uses the fields below.
	logs  map[common.Hash][]query.Log // of the newest published blocks, for their removal
	stuck time.Time                   // since when the head's move cannot be published; zero if it can
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
	round   uint64
	logs    []query.Log // with the member removed as it is now
	bytes   int
}

func newPublisher(chain source, config Config) *publisher {
	limits, now := config.Filters.WithDefaults(), config.Now
	if now == nil {
		now = time.Now
	}
	return &publisher{
		chain: chain, polled: feed.NewFilters[*polledFilter](limits, now), blocks: feed.NewJournal[*update](limits.Bytes, limits.Unread, now),
		held: limit.NewLedger(limits.Bytes), joined: make(chan struct{}, 1), subs: make(map[*feed.Subscriber]*subscriber), logs: make(map[common.Hash][]query.Log),
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
}

// publish publishes the move of the head since the last call. It returns false if it is to be
// called again, because nodes did not say what is in the new blocks: they may have dropped
// them already, and then the next head is published instead.
func (p *publisher) publish(ctx context.Context) (done bool) {
	p.mu.Lock()
	to := p.chain.Present() // while nobody can join
	if to == nil {
		p.mu.Unlock()
		return true
	}
	from := p.published
	idle := len(p.subs)+p.filters == 0
	if from == nil || idle {
		p.published = to
		p.mu.Unlock()
		clear(p.logs)
		p.stuck = time.Time{}
		return true
	}
	p.round++
	p.busy = true
	round := p.round
	p.mu.Unlock()
	dropped, added, ok := forwarded.Changes(from, to)
	var updates []*update
	for _, b := range dropped {
		updates = append(updates, &update{block: b, dropped: true, round: round})
	}
	for _, b := range added {
		updates = append(updates, &update{block: b, round: round})
	}
	if ok {
		err := p.fetchLogs(ctx, to, added)
		if err != nil && p.postpone(err, to) {
			return false
		}
		ok = err == nil
	}
	for _, u := range updates {
		if ok {
			ok = p.publishUpdate(ctx, to, u)
		}
	}
	if !ok && ctx.Err() == nil {
		slog.Error("the changes are not known: dropping all subscriptions and filters", "from", from.Head().Ref, "to", to.Head().Ref)
		p.dropAll()
	}
	p.stuck = time.Time{}
	p.advance(to)
	return true
}

// postpone ends a round that has published nothing, and reports whether it is to be tried
// again. A client that subscribes meanwhile begins in the round that publishes the move.
func (p *publisher) postpone(why error, to *forwarded.View) bool {
	if p.stuck.IsZero() {
		p.stuck = time.Now()
		slog.Warn("the new head is not published yet", "head", to.Head().Ref, "because", why)
	}
	if time.Since(p.stuck) > patience {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round--
	p.busy = false
	return true
}

// advance records that everything up to a view is published.
func (p *publisher) advance(to *forwarded.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published, p.busy = to, false
	for hash := range p.logs {
		if _, recent := to.Number(hash); !recent {
			delete(p.logs, hash)
		}
	}
}

// publishUpdate publishes one block, and reports whether it could. Filters get it first, so
// that a client that was notified finds it in its filters too.
func (p *publisher) publishUpdate(ctx context.Context, view *forwarded.View, u *update) bool {
	if p.wantsLogs() {
		if err := p.addLogs(ctx, view, u); err != nil {
			slog.Error("the logs of a block are not known", "block", u.block.Ref, "error", err)
			return false
		}
	}
	head, err := encodeHead(u.block)
	if err != nil {
		slog.Error("encode a head", "block", u.block.Ref, "error", err)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filters > 0 {
		p.blocks.Append(u, u.bytes+updateBytes)
	}
	for _, s := range p.subs {
		switch {
		case !s.wants(u):
		case s.watched == nil && !u.dropped:
			s.Notify(head)
		case s.watched != nil && s.watched.within(u.block.Number):
			for i := range u.logs {
				if s.watched.Match(&u.logs[i]) {
					s.Notify(u.logs[i].JSON)
				}
			}
		}
		s.passed(u)
	}
	return true
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

// dropAll ends all subscriptions and filters.
func (p *publisher) dropAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocks.Break()
	for s := range p.subs {
		s.End()
	}
}

// begin returns where a client begins that subscribes now. mu is held.
func (p *publisher) begin() start {
	view := p.chain.Present()
	if view == nil {
		return start{}
	}
	if !p.busy && (len(p.subs)+p.filters == 0 || p.published == nil) {
		p.published = view // nothing was published for anybody else
	}
	if !p.busy && p.published.Head().Hash == view.Head().Hash {
		return start{}
	}
	return start{view: view, round: p.round + 1}
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
