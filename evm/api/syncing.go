package api

import (
	"context"
	"time"

	"ashlar/eth"
	"ashlar/feed"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"
)

// syncEvery is how often the state of the synchronization is checked.
const syncEvery = 500 * time.Millisecond

// Sync is the progress of a chain, in block numbers.
type Sync struct {
	Starting, Current, Highest uint64
	Rate, Remaining            uint64 // blocks per second, and seconds to the head; 0 if not known
}

var syncSchema = schema.Object(schema.Members{
	"startingBlock": eth.Quantity, "currentBlock": eth.Quantity, "highestBlock": eth.Quantity,
}, schema.Members{"blocksPerSecond": eth.Quantity, "remainingSeconds": eth.Quantity})

func (s Sync) append(out []byte) []byte {
	out = appendQuantity(append(out, `{"startingBlock":`...), s.Starting)
	out = appendQuantity(append(out, `,"currentBlock":`...), s.Current)
	out = appendQuantity(append(out, `,"highestBlock":`...), s.Highest)
	if s.Rate > 0 {
		out = appendQuantity(append(out, `,"blocksPerSecond":`...), s.Rate)
	}
	if s.Remaining > 0 {
		out = appendQuantity(append(out, `,"remainingSeconds":`...), s.Remaining)
	}
	return append(out, '}')
}

// syncing answers eth_syncing: false if the chain has caught up, else the progress.
func (a *API) syncing(_ context.Context, params, out []byte) ([]byte, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return out, args.Err
	}
	if a.config.Syncing != nil {
		if sync, behind := a.config.Syncing(); behind {
			return sync.append(out), nil
		}
	}
	return append(out, "false"...), nil
}

// syncStatus returns the notification for subscribers to syncing.
func (p *publisher) syncStatus() (status []byte, behind bool) {
	if p.api.config.Syncing != nil {
		if sync, behind := p.api.config.Syncing(); behind {
			return append(sync.append([]byte(`{"syncing":true,"status":`)), '}'), true
		}
	}
	return []byte("false"), false
}

// subscribeSyncing starts a subscription to syncing. The subscriber is notified of the
// state right away, and then of every change.
func (p *publisher) subscribeSyncing(ctx context.Context) (id string, err error) {
	join := func(s *feed.Subscriber) {
		status := p.publishSync()
		p.syncing.add(s)
		s.Notify(status)
	}
	return p.subscribe(ctx, join, p.syncing.remove)
}

// publishSync publishes the state if it changed since the last call, and returns its
// notification. mu is held.
func (p *publisher) publishSync() []byte {
	status, behind := p.syncStatus()
	if behind != p.behind {
		p.behind = behind
		p.syncing.notify(status)
	}
	return status
}

// followSync publishes every change between behind and at the head.
func (p *publisher) followSync(ctx context.Context) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		p.mu.Lock()
		p.publishSync()
		p.mu.Unlock()
	}
}
