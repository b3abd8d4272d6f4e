package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ashlar/forwarded"
	"ashlar/forwarded/query"
)

const (
	// maxBlockLogs bounds the logs of one block that clients are notified of.
	maxBlockLogs = 100 * maxLogs
	// remembered is how many blocks before a new subscription have their logs in memory.
	remembered = 8
	// rememberTime is the most time for fetching them, which delays the next head.
	rememberTime = 2 * time.Second
)

// wantsLogs reports whether a client watches logs. mu is held.
func (p *publisher) wantsLogs() bool {
	for _, s := range p.subs {
		if s.watched != nil {
			return true
		}
	}
	return slices.ContainsFunc(p.polled.All(), func(f *polledFilter) bool { return f.watched != nil })
}

// logsOf asks for the logs of a block.
func (p *publisher) logsOf(ctx context.Context, view *forwarded.View, b *forwarded.Block) (logs []query.Log, err error) {
	err = p.chain.Logs(ctx, view, &query.Filter{Hash: &b.Hash}, maxBlockLogs, func(log *query.Log) error {
		logs = append(logs, *log)
		return nil
	})
	return logs, err
}

// fetchLogs fetches the logs of blocks before any of them is published.
func (p *publisher) fetchLogs(ctx context.Context, view *forwarded.View, added []*forwarded.Block) error {
	for _, b := range added {
		if _, known := p.logs[b.Hash]; known {
			continue
		}
		logs, err := p.logsOf(ctx, view, b)
		if err != nil {
			return fmt.Errorf("the logs of block %s: %w", b.Ref, err)
		}
		p.logs[b.Hash] = logs
	}
	return nil
}

// remember fetches the logs of the newest published blocks if clients watch logs. A new client may
// know these blocks, and is notified if they leave the chain, when nodes may not have them any more.
func (p *publisher) remember(ctx context.Context) {
	p.mu.Lock()
	view, wanted := p.published, p.wantsLogs()
	p.mu.Unlock()
	if view == nil || !wanted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rememberTime)
	defer cancel()
	blocks := slices.Clone(view.Blocks()[max(0, len(view.Blocks())-remembered):])
	slices.Reverse(blocks)
	_ = p.fetchLogs(ctx, view, blocks) // what is missing is fetched when it is needed
}

// addLogs adds the logs of its block to an update. The logs of a dropped block are those that
// were published, because nodes may not have the block any more; the newest comes first.
func (p *publisher) addLogs(ctx context.Context, view *forwarded.View, u *update) error {
	logs, known := p.logs[u.block.Hash]
	if !known {
		var err error
		if logs, err = p.logsOf(ctx, view, u.block); err != nil {
			return fmt.Errorf("the logs of block %s: %w", u.block.Ref, err)
		}
	}
	u.logs = logs
	if !u.dropped {
		p.logs[u.block.Hash] = logs
	} else {
		u.logs = make([]query.Log, len(logs))
		for i, log := range logs {
			var err error
			if log.JSON, err = removed(log.JSON); err != nil {
				return fmt.Errorf("the logs of block %s: %w", u.block.Ref, err)
			}
			u.logs[len(logs)-1-i] = log
		}
	}
	for i := range u.logs {
		u.bytes += len(u.logs[i].JSON) + updateBytes
	}
	return nil
}

// removed returns the JSON of a log whose block has left the chain.
func removed(log json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(log, &members); err != nil {
		return nil, err
	}
	members["removed"] = json.RawMessage("true")
	return json.Marshal(members)
}
