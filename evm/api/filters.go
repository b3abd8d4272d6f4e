package api

import (
	"context"
	"sync"

	"ashlar/jsonrpc"
)

// errFilterNotFound is said of filters that have expired, too, and of those of other keys.
var errFilterNotFound = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "filter not found"}

// polledKind is what a filter gives.
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
	asked logFilter // of polledLogs
	watchedLogs

	reading sync.Mutex // held while the filter is read, so that nothing is given twice
	begun   bool       // guarded by reading: it has a place; else it is a newcomer, with nothing to give
	place   uint64     // guarded by reading: in the journal, behind what was given
}

// filterBytes is what a filter takes beside its addresses and topics.
const filterBytes = 512

// newLogFilter answers eth_newFilter.
func (a *announcer) newLogFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	asked := argument(&args, 0, parseLogFilter)
	if args.err != nil {
		return out, args.err
	}
	watched, err := asked.watched()
	if err != nil {
		return out, err
	}
	return a.install(ctx, &polledFilter{kind: polledLogs, asked: asked, watchedLogs: watched}, out)
}

// newBlockFilter answers eth_newBlockFilter.
func (a *announcer) newBlockFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	if args := readArguments(params, 0, 0); args.err != nil {
		return out, args.err
	}
	return a.install(ctx, &polledFilter{kind: polledBlocks}, out)
}

// install makes a filter, which begins here and now, and appends its ID.
func (a *announcer) install(ctx context.Context, f *polledFilter, out []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, err := a.polled.Add(jsonrpc.CallerFrom(ctx), f, filterBytes+f.asked.bytes())
	if err != nil {
		return out, err
	}
	a.filters++
	if f.kind == polledHashes || f.kind == polledTransactions {
		f.begin(a.arrived.End())
	} else {
		a.begin(&newcomer{join: func() { f.begin(a.blocks.End()) }})
	}
	return jsonrpc.AppendString(out, id), nil
}

// begin lets a filter give what comes into its journal behind a place.
func (f *polledFilter) begin(place uint64) {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.begun, f.place = true, place
}

// polledArgument finds the filter that a call names as its only argument.
func (a *announcer) polledArgument(ctx context.Context, params []byte) (f *polledFilter, id string, err error) {
	args := readArguments(params, 1, 1)
	id = argument(&args, 0, parseID)
	if args.err != nil {
		return nil, "", args.err
	}
	f, ok := a.polled.Use(jsonrpc.CallerFrom(ctx), id)
	if !ok {
		return nil, "", errFilterNotFound
	}
	return f, id, nil
}

// getFilterChanges answers eth_getFilterChanges: what has come since the call before.
func (a *announcer) getFilterChanges(ctx context.Context, params, out []byte) ([]byte, error) {
	f, id, err := a.polledArgument(ctx, params)
	if err != nil {
		return out, err
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.kind == polledHashes || f.kind == polledTransactions {
		out, err = a.appendArrived(f, jsonrpc.RoomFor(ctx, out), out)
	} else {
		out, err = a.appendAnnounced(f, jsonrpc.RoomFor(ctx, out), out)
	}
	if err != nil { // it has fallen behind, or cannot go on
		a.polled.Remove(jsonrpc.CallerFrom(ctx), id)
	}
	return out, err
}

// appendAnnounced appends what was announced since a filter was last read. Whole
// blocks are given: after that with which there are as many logs as one answer may
// have, and before one that does not fit beside the others, the rest is left for the
// next call.
func (a *announcer) appendAnnounced(f *polledFilter, room jsonrpc.Room, out []byte) ([]byte, error) {
	if !f.begun {
		return append(out, "[]"...), nil
	}
	announced, _, ok := a.blocks.Since(f.place)
	if !ok {
		return out, errFilterNotFound
	}
	list := polledList{out: append(out, '['), room: room}
	for _, told := range announced {
		if list.given >= maxLogs {
			break
		}
		before := list
		if err := f.appendTold(told, &list); err != nil {
			return before.end(err)
		}
		f.place++
	}
	return list.end(nil)
}

// appendTold appends what a filter asks for of one announcement. The error says that
// it does not fit.
func (f *polledFilter) appendTold(told *announcement, list *polledList) error {
	if f.kind == polledBlocks && !told.dropped {
		return list.add(appendHex(list.next(), told.block.Hash[:]))
	}
	if f.kind != polledLogs || !f.within(told.block.Number) {
		return nil
	}
	for i := range told.logs {
		if log := &told.logs[i]; f.Match(&log.Log) {
			if err := list.add(append(list.next(), log.json...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// polledList is the array that a filter gives, while it is made. A copy of it is what
// it was when it was copied.
type polledList struct {
	out   []byte
	room  jsonrpc.Room
	given int // entries
}

// next returns the buffer to which the next entry is to be appended.
func (l *polledList) next() []byte {
	if l.given > 0 {
		return append(l.out, ',')
	}
	return l.out
}

// add takes that buffer with the entry. The error says that it does not fit.
func (l *polledList) add(out []byte) error {
	l.out = out
	l.given++
	return l.room.Check(len(out) + len("]"))
}

// end ends the array. tooLarge says that what was to come next does not fit: that is left
// for the next call, where there is anything to give without it.
func (l *polledList) end(tooLarge error) ([]byte, error) {
	if tooLarge != nil && l.given == 0 {
		return l.out, tooLarge
	}
	return append(l.out, ']'), nil
}

// getFilterLogs answers eth_getFilterLogs: all that a filter asks for, as eth_getLogs
// gives it.
func (a *announcer) getFilterLogs(ctx context.Context, params, out []byte) ([]byte, error) {
	f, _, err := a.polledArgument(ctx, params)
	if err != nil {
		return out, err
	}
	if f.kind != polledLogs {
		return out, errFilterNotFound
	}
	return a.api.appendFilteredLogs(ctx, f.asked, out)
}

// uninstallFilter answers eth_uninstallFilter.
func (a *announcer) uninstallFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	id := argument(&args, 0, parseID)
	if args.err != nil {
		return out, args.err
	}
	if !a.polled.Remove(jsonrpc.CallerFrom(ctx), id) {
		return append(out, "false"...), nil
	}
	return append(out, "true"...), nil
}
