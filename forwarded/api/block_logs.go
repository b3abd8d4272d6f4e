package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ashlar/eth"
	"ashlar/forwarded"
	"ashlar/forwarded/query"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// maxBlockLogs bounds the logs of one block that clients are notified of.
	maxBlockLogs = 100 * eth.MaxLogs
	// remembered is how many blocks before a new subscription have their logs in memory.
	remembered = 8
	// rememberTime is the most time for fetching them, which delays the next head.
	rememberTime = 2 * time.Second
	// roundShare is how many times the memory for recent logs those of the blocks may take that are published at once.
	roundShare = 4
)

// errLogBytes means that the head moved by blocks whose logs are too large together.
var errLogBytes = errors.New("the logs of the new blocks are too large")

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
	bytes, most := 0, roundShare*p.logs.most
	for _, b := range added {
		if bytes > most {
			return fmt.Errorf("%w: expected at most %d bytes", errLogBytes, most)
		}
		logs, known := p.logs.byBlock[b.Hash]
		if !known {
			var err error
			if logs, err = p.logsOf(ctx, view, b); err != nil {
				return fmt.Errorf("the logs of block %s: %w", b.Ref, err)
			}
			p.logs.add(b.Hash, logs)
		}
		bytes += logsBytes(logs)
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
	blocks = slices.DeleteFunc(blocks, func(b *forwarded.Block) bool { return b.Number < p.logs.from })
	slices.Reverse(blocks)
	_ = p.fetchLogs(ctx, view, blocks) // what is missing is fetched when it is needed
	if p.stuck.IsZero() {              // else the logs of the move that waits are kept, too
		p.logs.trim(view)
	}
}

// addLogs adds the logs of its block to an update. The logs of a dropped block are those that
// were published, because nodes may not have the block any more; the newest comes first.
func (p *publisher) addLogs(ctx context.Context, view *forwarded.View, u *update) error {
	logs, known := p.logs.byBlock[u.block.Hash]
	if !known {
		var err error
		if logs, err = p.logsOf(ctx, view, u.block); err != nil {
			return fmt.Errorf("the logs of block %s: %w", u.block.Ref, err)
		}
	}
	u.logs = logs
	if !u.dropped {
		p.logs.add(u.block.Hash, logs)
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
	u.bytes += logsBytes(u.logs)
	return nil
}

// logsBytes returns the memory of logs.
func logsBytes(logs []query.Log) (bytes int) {
	for i := range logs {
		bytes += len(logs[i].JSON) + updateBytes
	}
	return bytes
}

// recentLogs are the logs of the newest published blocks, for their removal. Between two rounds they take a number of bytes at
// most, or those of one block alone. If the logs of an older block are needed after all, nodes are asked again. While a move of the
// head waits to be published, they are also those of its blocks.
type recentLogs struct {
	byBlock map[common.Hash][]query.Log
	bytes   int
	most    int
	from    uint64 // those of blocks below are forgotten
}

func newRecentLogs(most int) recentLogs {
	return recentLogs{byBlock: make(map[common.Hash][]query.Log), most: most}
}

func (r *recentLogs) has(block common.Hash) bool {
	_, known := r.byBlock[block]
	return known
}

func (r *recentLogs) add(block common.Hash, logs []query.Log) {
	r.remove(block)
	r.byBlock[block] = logs
	r.bytes += updateBytes + logsBytes(logs)
}

func (r *recentLogs) remove(block common.Hash) {
	if logs, known := r.byBlock[block]; known {
		r.bytes -= updateBytes + logsBytes(logs)
		delete(r.byBlock, block)
	}
}

func (r *recentLogs) clear() {
	clear(r.byBlock)
	r.bytes, r.from = 0, 0
}

// keepOf forgets the logs of blocks that none of some views has.
func (r *recentLogs) keepOf(views ...*forwarded.View) {
	for block := range r.byBlock {
		recent := func(view *forwarded.View) bool { _, has := view.Number(block); return has }
		if !slices.ContainsFunc(views, recent) {
			r.remove(block)
		}
	}
}

// trim forgets the logs of blocks that a view does not have, and, of its oldest blocks, those that are too many.
func (r *recentLogs) trim(view *forwarded.View) {
	r.keepOf(view)
	r.from = min(r.from, view.Head().Number)
	for _, b := range view.Blocks() {
		if r.bytes <= r.most || len(r.byBlock) <= 1 {
			return
		}
		if r.has(b.Hash) {
			r.remove(b.Hash)
			r.from = b.Number + 1
		}
	}
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
