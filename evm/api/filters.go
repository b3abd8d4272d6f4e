package api

import (
	"context"
	"sync"

	"ashlar/eth"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// polledKind is what a filter returns.
type polledKind uint8

const (
	polledLogs polledKind = iota
	polledBlocks
	polledHashes       // of pending transactions
	polledTransactions // pending, whole
)

// polledFilter is a filter that is read by polling.
type polledFilter struct {
	kind  polledKind
	asked parameter.LogFilter // of polledLogs
	watchedLogs

	reading  sync.Mutex // held while the filter is read, so that nothing is returned twice
	started  bool       // guarded by reading: position is set; else it is a joiner and returns nothing
	position uint64     // guarded by reading: in the journal, after the last entry returned
}

// filterBytes is the memory of a filter without its addresses and topics.
const filterBytes = 512

// newLogFilter answers eth_newFilter.
func (p *publisher) newLogFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	asked := parameter.Decode(&args, 0, parameter.ParseLogFilter)
	if args.Err != nil {
		return out, args.Err
	}
	watched, err := watch(&asked)
	if err != nil {
		return out, err
	}
	return p.install(ctx, &polledFilter{kind: polledLogs, asked: asked, watchedLogs: watched}, out)
}

// newBlockFilter answers eth_newBlockFilter.
func (p *publisher) newBlockFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return out, args.Err
	}
	return p.install(ctx, &polledFilter{kind: polledBlocks}, out)
}

// install adds a filter that starts now, and appends its ID.
func (p *publisher) install(ctx context.Context, f *polledFilter, out []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, err := p.polled.Add(jsonrpc.CallerFrom(ctx), f, filterBytes+f.asked.Bytes())
	if err != nil {
		return out, err
	}
	p.filters++
	if f.kind == polledHashes || f.kind == polledTransactions {
		f.start(p.pending.End())
	} else {
		p.join(&joiner{join: func() { f.start(p.blocks.End()) }})
	}
	return jsonrpc.AppendString(out, id), nil
}

// start lets a filter return the entries of its journal from a position on.
func (f *polledFilter) start(position uint64) {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.started, f.position = true, position
}

// emitters returns the contracts that a filter for logs was installed for.
func (f *polledFilter) emitters() ([]common.Address, bool) {
	return f.asked.Addresses, f.kind == polledLogs
}

// appendChanges appends what has come since a filter was last read.
func (p *publisher) appendChanges(f *polledFilter, room jsonrpc.Room, out []byte) ([]byte, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.kind == polledHashes || f.kind == polledTransactions {
		return p.appendPending(f, room, out)
	}
	return p.appendUpdates(f, room, out)
}

// appendUpdates appends the blocks or logs published since a filter was last read. A
// block is never split: the rest is left for the next call after the block with which
// the answer reaches the limit of logs, or before a block that does not fit.
func (p *publisher) appendUpdates(f *polledFilter, room jsonrpc.Room, out []byte) ([]byte, error) {
	if !f.started {
		return append(out, "[]"...), nil
	}
	updates, _, ok := p.blocks.Since(f.position)
	if !ok {
		return out, feed.ErrFilterNotFound
	}
	list := jsonrpc.NewList(append(out, '['), room)
	for _, update := range updates {
		if list.Len() >= eth.MaxLogs {
			break
		}
		before := list
		if err := f.appendUpdate(update, &list); err != nil {
			return before.End(err)
		}
		f.position++
	}
	return list.End(nil)
}

// appendUpdate appends the entries that a filter selects from an update. It returns an
// error if they do not fit.
func (f *polledFilter) appendUpdate(update *blockUpdate, list *jsonrpc.List) error {
	if f.kind == polledBlocks && !update.dropped {
		return list.Add(appendHex(list.Next(), update.block.Hash[:]))
	}
	if f.kind != polledLogs || !f.within(update.block.Number) {
		return nil
	}
	for i := range update.logs {
		if log := &update.logs[i]; f.Match(&log.Log) {
			if err := list.Add(append(list.Next(), log.json...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// getFilterLogs answers eth_getFilterLogs: all logs of a filter, as eth_getLogs returns
// them.
func (p *publisher) getFilterLogs(ctx context.Context, params, out []byte) ([]byte, error) {
	f, _, err := p.polled.Named(ctx, params)
	if err != nil {
		return out, err
	}
	if f.kind != polledLogs {
		return out, feed.ErrFilterNotFound
	}
	return p.api.appendFilteredLogs(ctx, f.asked, out)
}
