package api

import (
	"context"
	"sync"
	"time"

	"ashlar/evm/pool"
	"ashlar/evm/query"
	"ashlar/feed"

	"golang.org/x/sync/errgroup"
)

// publisher publishes what happens on the network: subscribers are notified at once,
// filters keep it until they are polled. What a client gets leads from the chain at the
// time it subscribed to the chain as it is: for each move of the head first the dropped
// blocks, newest first, then the added ones, oldest first, each once. If none was added,
// the head is published once more. A block can be queried before it is published.
type publisher struct {
	api     *API
	polled  *feed.Filters[*polledFilter]
	blocks  *feed.Journal[*blockUpdate]        // for polled
	pending *feed.Journal[*pendingTransaction] // for polled

	subscribing sync.Once
	arrivals    *pool.Subscription // set in subscribing, see arriving

	mu                  sync.Mutex                         // held while a block is published, so that no subscriber joins or leaves meanwhile
	published           *query.View                        // guarded by mu: everything up to its head is published; nil before the first block
	publishing          bool                               // guarded by mu: the blocks after published are being published
	joining             []*joiner                          // guarded by mu: wait until their head is published, in order of arrival
	heads               subscribers                        // guarded by mu: newHeads
	logs                logSubscribers                     // guarded by mu
	pendingHashes       subscribers                        // guarded by mu: newPendingTransactions
	pendingTransactions subscribers                        // guarded by mu: newPendingTransactions, whole transactions
	syncing             subscribers                        // guarded by mu
	receipts            map[*feed.Subscriber]receiptFilter // guarded by mu
	behind              bool                               // guarded by mu: the last state published to syncing
	filters             int                                // guarded by mu: polled filters, including any that expired since the last sweep
}

// subscribers all get the same notifications.
type subscribers map[*feed.Subscriber]struct{}

func (s subscribers) add(one *feed.Subscriber)    { s[one] = struct{}{} }
func (s subscribers) remove(one *feed.Subscriber) { delete(s, one) }

func (s subscribers) notify(result []byte) {
	for one := range s {
		one.Notify(result)
	}
}

func newPublisher(api *API, config Config) *publisher {
	limits, now := config.Filters.WithDefaults(), config.Now
	if now == nil {
		now = time.Now
	}
	return &publisher{
		api:     api,
		polled:  feed.NewFilters[*polledFilter](limits, now),
		blocks:  feed.NewJournal[*blockUpdate](limits.Bytes, limits.Unread, now),
		pending: feed.NewJournal[*pendingTransaction](limits.Bytes, limits.Unread, now),
		heads:   make(subscribers), logs: newLogSubscribers(limits.Bytes),
		pendingHashes: make(subscribers), pendingTransactions: make(subscribers), syncing: make(subscribers),
		receipts: make(map[*feed.Subscriber]receiptFilter),
	}
}

// expireEvery is how often expired filters are removed.
const expireEvery = 15 * time.Second

// Run notifies subscribers and fills filters until ctx is done. It must be called at
// most once, after the chain got its pool, if it has one.
func (a *API) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return a.chain.EachMove(ctx, func(ctx context.Context) error { a.publisher.publish(ctx); return nil })
	})
	group.Go(func() error { return a.publisher.expireLoop(ctx) })
	if a.chain.Pool() != nil {
		group.Go(func() error { return a.publisher.followPool(ctx) })
	}
	if a.config.Syncing != nil {
		group.Go(func() error { return a.publisher.followSync(ctx) })
	}
	return group.Wait()
}

// publish publishes the moves of the head since the last call: up to the head of each
// joiner in turn, then up to the chain's. If the changes cannot be read, current
// subscriptions and filters for blocks and logs are dropped; everything else goes on.
func (p *publisher) publish(ctx context.Context) {
	for _, view := range p.startPublishing() {
		if err := p.publishTo(ctx, view); ctx.Err() != nil {
			return
		} else if err != nil {
			p.api.config.Log.Error("cannot read changes: dropping all subscriptions and filters for blocks and logs", "block", view.Head().Number, "error", err)
			p.dropAll()
		}
		p.advance(view)
	}
	p.mu.Lock()
	p.publishing = false
	p.mu.Unlock()
}

// startPublishing returns the views to publish up to, in order. From now on new
// subscribers become joiners.
func (p *publisher) startPublishing() (to []*query.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	view, err := p.api.chain.View()
	if err != nil { // there is no block yet
		return nil
	}
	p.publishing = true
	for _, j := range p.joining {
		to = append(to, j.view)
	}
	return append(to, view)
}

// publishTo publishes the blocks between the published view and another.
func (p *publisher) publishTo(ctx context.Context, to *query.View) error {
	from := p.lastPublished()
	if from == nil {
		return nil
	}
	changes, err := p.api.chain.Changes(ctx, from, to)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if err := p.publishBlock(ctx, change); err != nil {
			return err
		}
	}
	if len(changes) > 0 && changes[len(changes)-1].Dropped {
		return p.publishAncestor(ctx, query.Change{Block: to.Head(), View: to})
	}
	return nil
}

// dropAll ends all subscriptions and filters for blocks and logs.
func (p *publisher) dropAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocks.Break()
	for one := range p.heads {
		one.End()
	}
	for one := range p.receipts {
		one.End()
	}
	p.logs.end()
}

// lastPublished returns the published view, or nil if there is none or there are no
// subscribers.
func (p *publisher) lastPublished() *query.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heads)+len(p.receipts)+p.logs.count+p.filters == 0 {
		return nil
	}
	return p.published
}

// publishBlock publishes one change. Filters get it first, so that a client that was
// notified finds it in its filters too.
func (p *publisher) publishBlock(ctx context.Context, change query.Change) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.logs.count+p.filters > 0 {
		update, err := p.api.blockUpdate(ctx, change)
		if err != nil {
			return err
		}
		if p.filters > 0 {
			p.blocks.Append(update, update.bytes)
		}
		defer p.logs.notify(update)
	}
	if change.Dropped {
		return nil
	}
	if err := p.publishHead(ctx, change); err != nil || len(p.receipts) == 0 {
		return err
	}
	return p.publishReceipts(ctx, change)
}

// publishAncestor publishes the head after it went back to an ancestor. No block was added, so nothing else would
// show that the chain ends there. Its logs and receipts were published before.
func (p *publisher) publishAncestor(ctx context.Context, head query.Change) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filters > 0 {
		p.blocks.Append(&blockUpdate{block: head.Block, bytes: blockUpdateBytes}, blockUpdateBytes)
	}
	return p.publishHead(ctx, head)
}

// publishHead notifies the subscribers to newHeads of a block. mu is held.
func (p *publisher) publishHead(ctx context.Context, change query.Change) error {
	if len(p.heads) == 0 {
		return nil
	}
	head, err := encodeHead(ctx, change)
	if err != nil {
		return err
	}
	p.heads.notify(head)
	return nil
}

// expireLoop removes expired filters and the journal entries kept for them.
func (p *publisher) expireLoop(ctx context.Context) error {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.expire()
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *publisher) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filters = p.polled.Expire()
	p.blocks.Expire()
	p.pending.Expire()
}

// subscribe starts a subscription. join and leave are called with mu held.
func (p *publisher) subscribe(ctx context.Context, join, leave func(*feed.Subscriber)) (id string, err error) {
	locked := func(run func(*feed.Subscriber)) func(*feed.Subscriber) {
		return func(s *feed.Subscriber) {
			p.mu.Lock()
			defer p.mu.Unlock()
			run(s)
		}
	}
	return feed.Subscribe(ctx, subscriptionMethod, locked(join), locked(leave))
}
