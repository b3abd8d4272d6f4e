package api

import (
	"context"
	"slices"
	"time"
)

const (
	// remembered is how many blocks before a new subscription have their logs in memory.
	remembered = 8
	// rememberTime is the most time for fetching them, which delays the next head.
	rememberTime = 2 * time.Second
)

// remember fetches the logs of the newest published blocks if clients watch logs. A new client may
// know these blocks, and is notified if they leave the chain, when nodes may not have them any more.
func (p *publisher) remember(ctx context.Context) {
	p.mu.Lock()
	view := p.published
	p.mu.Unlock()
	if view == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rememberTime)
	defer cancel()
	blocks := slices.Clone(view.Blocks()[max(0, len(view.Blocks())-remembered):])
	slices.Reverse(blocks)
	_ = p.fetchLogs(ctx, view, blocks) // what is missing is fetched when it is needed
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
