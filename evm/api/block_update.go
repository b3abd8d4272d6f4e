package api

import (
	"bytes"
	"context"
	"slices"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/query"
)

// blockUpdate is an added or dropped block with its logs, as it is published. It is
// immutable.
type blockUpdate struct {
	block   chain.Ref
	dropped bool
	logs    []updateLog // in the order in which they are published
	bytes   int         // of memory, approximately
}

// updateLog is a log and its JSON. Log.Data is empty: only the JSON contains it.
type updateLog struct {
	archive.Log
	json []byte
}

// The memory of a blockUpdate and of each of its logs, without the data they refer to.
const (
	blockUpdateBytes = 128
	updateLogBytes   = 112
)

// encodeHead returns the notification of a block for subscribers to newHeads.
func encodeHead(ctx context.Context, change query.Change) ([]byte, error) {
	header, err := change.View.Header(ctx, change.Block.Number)
	if err != nil {
		return nil, err
	}
	out := appendHeader([]byte{'{'}, header.Header, header.Hash)
	return append(out, '}'), nil
}

// blockUpdate reads and encodes the logs of a block. Those of a dropped block are in
// reverse order, so that a client can undo them one by one.
func (a *API) blockUpdate(ctx context.Context, change query.Change) (*blockUpdate, error) {
	b, err := a.blockWithReceipts(ctx, change.View, change.Block.Number)
	if err != nil {
		return nil, err
	}
	defer b.release()
	hashes, err := a.hashes.of(b.Hash, &b.body)
	if err != nil {
		return nil, err
	}
	update := &blockUpdate{block: change.Block, dropped: change.Dropped}
	place := logPlace{removed: change.Dropped}
	place.enter(change.Block, b.Time)
	var out []byte
	var ends []int // of each log's JSON in out
	for i := range b.body.Len() {
		receipt, err := b.receipts.Receipt(i)
		if err != nil {
			return nil, err
		}
		place.transaction, place.transactionHash, place.position = uint64(i), hashes.hash(i), receipt.FirstLog
		logs := receipt.Logs()
		for {
			log, ok, err := logs.Next()
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			out = appendLog(out, &log, &place)
			ends = append(ends, len(out))
			place.position++
			update.logs = append(update.logs, updateLog{Log: archive.Log{Address: log.Address, Topics: bytes.Clone(log.Topics)}})
		}
	}
	update.finish(out, ends)
	return update, nil
}

// finish sets the JSON of each log, a part of out, and puts the logs in order.
func (u *blockUpdate) finish(out []byte, ends []int) {
	u.bytes = blockUpdateBytes + len(out)
	begin := 0
	for i, end := range ends {
		log := &u.logs[i]
		log.json = out[begin:end:end]
		u.bytes += updateLogBytes + len(log.Topics)
		begin = end
	}
	if u.dropped {
		slices.Reverse(u.logs)
	}
}
