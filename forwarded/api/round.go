package api

import (
	"context"
	"errors"
	"log/slog"

	"ashlar/forwarded"
)

// round is one attempt to publish the move of the head.
type round struct {
	number    uint64
	from, to  *forwarded.View
	watchLogs bool                          // clients that take part watch logs, or may
	updates   []*update                     // that lead from one head to the other
	joining   map[*forwarded.View][]*update // from the views of clients that join
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
	r := &round{number: p.round, from: p.published, to: to, watchLogs: p.filters > 0, joining: make(map[*forwarded.View][]*update)}
	for _, s := range p.subs {
		r.watchLogs = r.watchLogs || s.watched != nil
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

// changes returns the updates that lead from a view to the head of the round.
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
	return updates, nil
}

// compare finds the updates of a round.
func (r *round) compare() (err error) {
	if r.updates, err = r.changes(r.from); err != nil {
		return err
	}
	for view := range r.joining {
		if r.joining[view], err = r.changes(view); err != nil {
			return err
		}
	}
	return nil
}

// fetch fetches the logs of the added blocks, before any of them is published.
func (p *publisher) fetch(ctx context.Context, r *round) error {
	if !r.watchLogs {
		return nil
	}
	for _, updates := range append(r.fromJoining(), r.updates) {
		var added []*forwarded.Block
		for _, u := range updates {
			if !u.dropped {
				added = append(added, u.block)
			}
		}
		if err := p.fetchLogs(ctx, r.to, added); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) fromJoining() (all [][]*update) {
	for _, updates := range r.joining {
		all = append(all, updates)
	}
	return all
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
			return err
		}
		p.publishUpdate(u)
	}
	p.joinSubscribers(r)
	return nil
}

// completeJoining completes the updates for clients that join. Blocks that they alone may know and that
// are gone again may have logs that no node tells any more: then clients were not told them either.
func (p *publisher) completeJoining(ctx context.Context, r *round) error {
	inTime, cancel := context.WithTimeout(ctx, rememberTime)
	defer cancel()
	for _, updates := range r.fromJoining() {
		for _, u := range updates {
			err := p.complete(inTime, r, u)
			if err != nil && !u.dropped {
				return err
			}
			if err != nil {
				slog.Debug("the logs of a block that was never published are not known", "block", u.block.Ref, "error", err)
			}
		}
	}
	return nil
}

// joinFilters leads the filters that join in a round to its head.
func (p *publisher) joinFilters(r *round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.polled.All() {
		if f.joinsIn(r) {
			f.join(r, p.blocks.End())
		}
	}
}

// joinSubscribers leads the subscribers that join in a round to its head.
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
