package api

import (
	"bytes"
	"context"
	"slices"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/query"
)

// announcement is a block that has come or was dropped, as clients are told of it.
// It does not change.
type announcement struct {
	block   chain.Ref
	dropped bool
	logs    []announcedLog // in the order in which they are told
	bytes   int            // about what it takes
}

// announcedLog is a log with its JSON. It has no data but in there.
type announcedLog struct {
	archive.Log
	json []byte
}

// Of an announcement and of each of its logs, beside what they refer to.
const (
	announcementBytes = 128
	announcedLogBytes = 112
)

// encodeHead is what subscribers to newHeads are told of a block.
func encodeHead(ctx context.Context, change query.Change) ([]byte, error) {
	header, err := change.View.Header(ctx, change.Block.Number)
	if err != nil {
		return nil, err
	}
	out := appendHeader([]byte{'{'}, header.Header, header.Hash, false)
	return append(out, '}'), nil
}

// announcement reads the logs of a block and encodes them. Those of a block that was
// dropped come last first, so that whoever undoes them one by one goes back as it came.
func (a *API) announcement(ctx context.Context, change query.Change) (*announcement, error) {
	b, err := a.blockWithReceipts(ctx, change.View, change.Block.Number)
	if err != nil {
		return nil, err
	}
	defer b.release()
	hashes, err := a.hashes.of(b.Hash, &b.body)
	if err != nil {
		return nil, err
	}
	told := &announcement{block: change.Block, dropped: change.Dropped}
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
			told.logs = append(told.logs, announcedLog{Log: archive.Log{Address: log.Address, Topics: bytes.Clone(log.Topics)}})
		}
	}
	told.finish(out, ends)
	return told, nil
}

// finish gives each log its JSON, which lies in out, and puts the logs in order.
func (told *announcement) finish(out []byte, ends []int) {
	told.bytes = announcementBytes + len(out)
	begin := 0
	for i, end := range ends {
		log := &told.logs[i]
		log.json = out[begin:end:end]
		told.bytes += announcedLogBytes + len(log.Topics)
		begin = end
	}
	if told.dropped {
		slices.Reverse(told.logs)
	}
}
