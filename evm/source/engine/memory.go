package engine

import (
	"context"

	"ashlar/jsonrpc"
	"ashlar/limit"
)

const (
	// largestAnswer is more than the answers of one request: those of a batch, with one more result that
	// does not fit beside them.
	largestAnswer = batchBytes + bodiesBytes + 1<<20
	// answersBytes bounds the answers that are made or not sent yet, those of all requests together. One
	// request alone may hold half, see [limit.Budget], so it is never refused.
	answersBytes = 2 * largestAnswer
)

// held counts the answers of one request. It implements [jsonrpc.Holder]. Small answers, such as those about
// blocks and forkchoices, are not counted, so they are never refused.
type held struct {
	lease   limit.Lease
	crowded bool // an answer did not fit
}

// Hold implements jsonrpc.Holder. Once an answer does not fit, further ones are refused: they would wait in memory
// together with the earlier ones.
func (h *held) Hold(length int) error {
	if !h.crowded && h.lease.Hold(length) {
		return nil
	}
	h.crowded = true
	return fault(jsonrpc.CodeLimitExceeded, "Server busy", "answers of other requests hold the memory: try again later")
}

// Reserve implements jsonrpc.Holder.
func (h *held) Reserve(capacity int) bool { return h.lease.Hold(capacity) }

// Drop implements jsonrpc.Holder.
func (h *held) Drop([]byte) {}

// counted has the result of each method counted, also of those that do not check while they make it.
func counted(methods jsonrpc.Handlers) jsonrpc.Handlers {
	all := make(jsonrpc.Handlers, len(methods))
	for name, run := range methods {
		all[name] = func(ctx context.Context, params, out []byte) ([]byte, error) {
			room := jsonrpc.RoomFor(ctx, out)
			if err := room.Check(len(out)); err != nil { // the earlier answers of a batch would wait with this call
				return out, err
			}
			grown, err := run(ctx, params, out)
			if err == nil {
				err = room.Check(len(grown))
			}
			if err != nil {
				return out, err
			}
			return grown, nil
		}
	}
	return all
}
