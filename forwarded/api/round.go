package api

import (
	"context"
	"errors"
	"maps"
	"slices"

	"ashlar/forwarded"

	"github.com/ethereum/go-ethereum/common"
)

// round is one attempt to publish the move of the head.
type round struct {
	number    uint64
	from, to  *forwarded.View
	watchLogs bool                          // clients that take part watch logs
	updates   []*update                     // from one head to the other
	joining   map[*forwarded.View][]*update // from the views of clients that join
	shared    map[change]*update            // of joining, each once
}

// change is a block that was added or dropped, or that the head went back to.
type change struct {
	hash           common.Hash
	dropped, again bool
}

var errNoCommonBlock = errors.New("the chains have no block in common")

// startRound begins a round. It returns nil if there is nobody to notify. Clients that join from now
// on take part in the next round.
func (p *publisher) startRound() *round {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.chain.Present() // while nobody can join
	if to == nil {
		return nil
	}
	if p.published == nil || len(p.subs)+p.filters == 0 {
		p.published = to
		return nil
	}
	p.round++
	p.busy = true
	r := &round{number: p.round, from: p.published, to: to, watchLogs: p.wantsLogs(), joining: make(map[*forwarded.View][]*update), shared: make(map[change]*update)}
	for _, s := range p.subs {
		if s.view != nil {
			r.joining[s.view] = nil
		}
	}
	for _, f := range p.polled.All() {
		if f.view != nil {
			r.joining[f.view] = nil
		}
	}
	return r
}

// changes returns the updates from a view to the head of the round.
func (r *round) changes(from *forwarded.View) (updates []*update, err error) {
	dropped, added, ok := forwarded.Changes(from, r.to)
	if !ok {
		return nil, errNoCommonBlock
	}
	for _, b := range dropped {
		updates = append(updates, &update{block: b, dropped: true, round: r.number})
	}
	for _, b := range added {
		updates = append(updates, &update{block: b, round: r.number})
	}
	if len(dropped) > 0 && len(added) == 0 {
		updates = append(updates, &update{block: r.to.Head(), again: true, round: r.number})
	}
	return updates, nil
}

// compare finds the updates of a round.
func (r *round) compare() (err error) {
	if r.updates, err = r.changes(r.from); err != nil {
		return err
	}
	for view := range r.joining {
		updates, err := r.changes(view)
		if err != nil {
			return err
		}
		r.joining[view] = r.share(updates)
	}
	return nil
}

// share replaces updates by those of other views for the same blocks, so that each is completed once.
func (r *round) share(updates []*update) []*update {
	for i, u := range updates {
		c := change{u.block.Hash, u.dropped, u.again}
		if same := r.shared[c]; same != nil {
			updates[i] = same
		} else {
			r.shared[c] = u
		}
	}
	return updates
}

// fetch fetches the logs of the added blocks, before any of them is published.
func (p *publisher) fetch(ctx context.Context, r *round) error {
	if !r.watchLogs {
		return nil
	}
	for _, updates := range append(slices.Collect(maps.Values(r.joining)), r.updates) {
		var added []*forwarded.Block
		for _, u := range updates {
			if !u.dropped && !u.again {
				added = append(added, u.block)
			}
		}
		if err := p.fetchLogs(ctx, r.to, added); err != nil {
			return err
		}
	}
	return nil
}

// publishRound publishes the updates of a round. Filters that join come first and subscribers that
// join come last, so that a client that was notified of a block finds it in all its filters.
func (p *publisher) publishRound(ctx context.Context, r *round) error {
	if err := p.completeJoining(ctx, r); err != nil {
		return err
	}
	p.joinFilters(r)
	for _, u := range r.updates {
		if err := p.complete(ctx, r, u); err != nil {
			if !u.dropped || ctx.Err() != nil {
				return err
			}
			p.dropLogs(err, func(s *start) bool { return s.wants(u) }) // heads say nothing of dropped blocks
		}
		p.publishUpdate(u)
	}
	p.joinSubscribers(r)
	return nil
}

// completeJoining completes the updates for clients that join. Nodes may no longer have the logs of a
// dropped block that was never published. Clients were then not notified of them.
func (p *publisher) completeJoining(ctx context.Context, r *round) error {
	inTime, cancel := context.WithTimeout(ctx, rememberTime)
	defer cancel()
	for _, u := range r.shared {
		err := p.complete(inTime, r, u)
		if err != nil && !u.dropped {
			return err
		}
		if err != nil {
			p.log.Debug("the logs of a block that was never published are not known", "block", u.block.Ref, "error", err)
		}
	}
	return nil
}

// joinFilters gives the filters that join in a round the updates from their views to its head.
func (p *publisher) joinFilters(r *round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	filters := slices.DeleteFunc(p.polled.All(), func(f *polledFilter) bool { return !f.joinsIn(r) })
	var sets [][]*update
	places := make(map[*forwarded.View]joinedAt)
	for _, f := range filters {
		set := r.joining[f.view]
		if _, known := places[f.view]; !known && len(set) > 0 {
			places[f.view] = joinedAt{position: p.joins.End(), set: len(sets), left: len(set)}
			sets = append(sets, set)
		}
	}
	if len(sets) > 0 {
		p.joins.Append(sets, bytesOf(sets))
	}
	for _, f := range filters {
		f.join(r, places[f.view], p.blocks.End())
	}
}

// bytesOf returns the memory of sets of updates that share some of them.
func bytesOf(sets [][]*update) (bytes int) {
	counted := make(map[*update]bool)
	for _, u := range slices.Concat(sets...) {
		if !counted[u] {
			counted[u] = true
			bytes += u.bytes
		}
	}
	return bytes
}

// joinSubscribers notifies the subscribers that join in a round of the updates from their views to its head.
func (p *publisher) joinSubscribers(r *round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.subs {
		if !s.joinsIn(r) {
			continue
		}
		for _, u := range r.joining[s.view] {
			s.notify(u)
		}
		s.start = start{round: r.number}
	}
}
