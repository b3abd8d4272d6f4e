package engine

import (
	"context"
	"fmt"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

const (
	// maxBodies is how many bodies a call may ask for. The specification demands at least 32.
	maxBodies = 1024
	// bodiesBytes ends an answer that gets long, by an error: hexadecimal takes two
	// characters a byte.
	bodiesBytes = 256 << 20
)

// bodiesByHash answers engine_getPayloadBodiesByHash. withLists is V2.
func (a *API) bodiesByHash(withLists bool) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		wanted, err := hashesAlone(params)
		if err != nil {
			return out, err
		}
		if len(wanted) > maxBodies {
			return out, tooLarge(uint64(len(wanted)), "bodies", maxBodies)
		}
		return appendBodies(ctx, out, withLists, len(wanted), func(i int) (*Body, bool, error) {
			body, err := a.config.Chain.Body(ctx, wanted[i])
			return body, false, err
		})
	}
}

// bodiesByRange answers engine_getPayloadBodiesByRange. withLists is V2.
func (a *API) bodiesByRange(withLists bool) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		var args [2][]byte
		if err := jsonrpc.Arguments(params, args[:], len(args)); err != nil {
			return out, err
		}
		var start, count uint64
		if err := number(&start)(args[0]); err != nil {
			return out, invalidParams("start: " + err.Error())
		}
		if err := number(&count)(args[1]); err != nil {
			return out, invalidParams("count: " + err.Error())
		}
		if start == 0 || count == 0 {
			return out, invalidParams(fmt.Sprintf("start %d, count %d: expected both to be at least 1", start, count))
		}
		if count > maxBodies {
			return out, tooLarge(count, "bodies", maxBodies)
		}
		return appendBodies(ctx, out, withLists, int(count), func(i int) (*Body, bool, error) {
			at := start + uint64(i)
			if at < start {
				return nil, true, nil
			}
			return a.config.Chain.BodyAt(ctx, at)
		})
	}
}

// appendBodies appends an array of up to n bodies, null for those that are nil. The
// array ends before the first that is above the head.
func appendBodies(ctx context.Context, out []byte, withLists bool, n int, body func(i int) (b *Body, above bool, err error)) ([]byte, error) {
	start, room := len(out), jsonrpc.RoomFor(ctx, out)
	out = append(out, '[')
	for i := range n {
		b, above, err := body(i)
		if err == nil {
			err = room.Check(len(out))
		}
		if err != nil {
			return out[:start], err
		}
		if above {
			break
		}
		if i > 0 {
			out = append(out, ',')
		}
		if out = appendBody(out, b, withLists); len(out)-start > bodiesBytes {
			return out[:start], fault(codeTooLargeRequest, "Too large request", fmt.Sprintf("the answer exceeds %d bytes", bodiesBytes))
		}
	}
	return append(out, ']'), nil
}

// appendBody appends an ExecutionPayloadBodyV1, or V2 with the access list.
func appendBody(out []byte, b *Body, withList bool) []byte {
	if b == nil {
		return append(out, "null"...)
	}
	out = append(out, `{"transactions":[`...)
	for i, transaction := range b.Transactions {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendData(out, transaction)
	}
	out = append(out, `],"withdrawals":`...)
	if b.Withdrawals == nil {
		out = append(out, "null"...)
	} else {
		out = append(out, '[')
		for i, w := range b.Withdrawals {
			if i > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `{"index":"%#x","validatorIndex":"%#x","address":"%#x","amount":"%#x"}`, w.Index, w.Validator, w.Address[:], w.Amount)
		}
		out = append(out, ']')
	}
	if withList {
		out = append(out, `,"blockAccessList":`...)
		if b.AccessList == nil {
			out = append(out, "null"...)
		} else {
			out = appendData(out, b.AccessList)
		}
	}
	return append(out, '}')
}

// appendData appends bytes as hexadecimal.
func appendData(out, data []byte) []byte {
	return append(append(append(out, '"'), hexutil.Encode(data)...), '"')
}
