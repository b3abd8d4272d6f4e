package api

import (
	"context"
	"time"

	"ashlar/feed"
)

// syncEvery is how often it is looked whether the chain is behind or has caught up.
const syncEvery = 500 * time.Millisecond

// Sync is how far a chain is on its way, in numbers of blocks.
type Sync struct{ Starting, Current, Highest uint64 }

func (s Sync) append(out []byte) []byte {
	out = appendQuantity(append(out, `{"startingBlock":`...), s.Starting)
	out = appendQuantity(append(out, `,"currentBlock":`...), s.Current)
	return append(appendQuantity(append(out, `,"highestBlock":`...), s.Highest), '}')
}

// syncing answers eth_syncing: false at the head, else the way to it.
func (a *API) syncing(_ context.Context, params, out []byte) ([]byte, error) {
	if args := readArguments(params, 0, 0); args.err != nil {
		return out, args.err
	}
	if a.config.Syncing != nil {
		if sync, behind := a.config.Syncing(); behind {
			return sync.append(out), nil
		}
	}
	return append(out, "false"...), nil
}

// syncStatus is what subscribers to syncing are told.
func (a *announcer) syncStatus() (status []byte, behind bool) {
	if a.api.config.Syncing != nil {
		if sync, behind := a.api.config.Syncing(); behind {
			return append(sync.append([]byte(`{"syncing":true,"status":`)), '}'), true
		}
	}
	return []byte("false"), false
}

// subscribeSyncing begins a subscription to syncing, which is told how it is and
// then of every change.
func (a *announcer) subscribeSyncing(ctx context.Context) (id string, err error) {
	join := func(s *feed.Subscriber) {
		status := a.tellSync()
		a.syncing.add(s)
		s.Tell(status)
	}
	return a.subscribe(ctx, join, a.syncing.remove)
}

// tellSync tells of a change since the last time, and says how it is. mu is held.
func (a *announcer) tellSync() []byte {
	status, behind := a.syncStatus()
	if behind != a.behind {
		a.behind = behind
		a.syncing.tell(status)
	}
	return status
}

// followSync tells of every change between behind and at the head.
func (a *announcer) followSync(ctx context.Context) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		a.mu.Lock()
		a.tellSync()
		a.mu.Unlock()
	}
}
