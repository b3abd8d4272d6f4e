package api

import (
	"slices"

	"ashlar/evm/query"
)

// joiner is a subscriber or filter that waits to join. The chain's head moves before the
// move is published, so a client may already know blocks that are not yet published. It
// must not be notified of these, so it joins once its head is published.
type joiner struct {
	view *query.View // the chain when the client subscribed
	join func()      // called with the publisher's mu held
}

// join lets a subscriber or filter start at the chain's current head. mu is held.
func (p *publisher) join(j *joiner) {
	view, err := p.api.chain.View()
	if err != nil { // there is no block yet
		j.join()
		return
	}
	if p.published == nil {
		p.published = view
	}
	if p.publishing || len(p.joining) > 0 || p.published.Head() != view.Head() {
		j.view = view
		p.joining = append(p.joining, j)
		return
	}
	j.join()
}

// cancelJoin removes a joiner that may not have joined yet. mu is held.
func (p *publisher) cancelJoin(j *joiner) {
	p.joining = slices.DeleteFunc(p.joining, func(other *joiner) bool { return other == j })
}

// advance records that everything up to a view is published, and lets the joiners at
// its head join.
func (p *publisher) advance(to *query.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published = to
	joined := 0
	for ; joined < len(p.joining) && p.joining[joined].view.Head() == to.Head(); joined++ {
		p.joining[joined].join()
	}
	p.joining = slices.Delete(p.joining, 0, joined)
}
