package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ashlar/chain"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// The limits of trace_filter on networks that have a trace index.
const (
	maxFrames = 10_000 // frames of a range that is longer than wholeRange
	// wholeRange is the number of blocks of which all frames are returned, as trace_block returns those of one.
	// Indexers that do not shorten their ranges ask for so many: graph-node's ETHEREUM_TRACE_STREAM_STEP_SIZE.
	wholeRange = 50
)

// traceFilter is the parameters of trace_filter.
type traceFilter struct {
	from, to     chain.BlockID // of the range, inclusive
	senders      []common.Address
	receivers    []common.Address
	intersection bool // a frame must match both lists, not only one
	after        uint64
	count        *uint64 // nil: all
}

// parseTraceFilter decodes a filter of frames. An empty list of addresses means no
// restriction.
func parseTraceFilter(raw []byte) (filter traceFilter, err error) {
	filter.from, filter.to = chain.BlockID{Tag: chain.Earliest}, chain.BlockID{Tag: chain.Latest}
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("fromBlock"):
			return setBlock(&filter.from, value, chain.Earliest)
		case name.Is("toBlock"):
			return setBlock(&filter.to, value, chain.Latest)
		case name.Is("fromAddress"):
			return jsonrpc.Set(&filter.senders, value, parseList(parameter.ParseAddress))
		case name.Is("toAddress"):
			return jsonrpc.Set(&filter.receivers, value, parseList(parameter.ParseAddress))
		case name.Is("after"):
			return jsonrpc.Set(&filter.after, value, parameter.ParseCount)
		case name.Is("count"):
			return jsonrpc.SetOptional(&filter.count, value, parameter.ParseCount)
		case name.Is("mode"):
			return filter.setMode(value)
		}
		return nil
	})
	return filter, err
}

// setBlock parses a member that names a block. A null means the tag, as if the member were absent.
func setBlock(dst *chain.BlockID, raw []byte, absent chain.Tag) error {
	if jsonrpc.IsNull(raw) {
		*dst = chain.BlockID{Tag: absent}
		return nil
	}
	return jsonrpc.Set(dst, raw, parameter.ParseBlock)
}

func (f *traceFilter) setMode(value []byte) error {
	if jsonrpc.IsNull(value) {
		return nil
	}
	switch mode, _ := jsonrpc.String(value); string(mode) {
	case "union":
		f.intersection = false
	case "intersection":
		f.intersection = true
	default:
		return errors.New("unknown mode (want union or intersection)")
	}
	return nil
}

// matches reports whether the filter selects a frame.
func (f *traceFilter) matches(frame *trace.Frame) bool {
	if len(f.senders) == 0 && len(f.receivers) == 0 {
		return true
	}
	from, to := frame.Who()
	sent := from != nil && slices.Contains(f.senders, *from)
	received := to != nil && slices.Contains(f.receivers, *to)
	if f.intersection {
		return (sent || len(f.senders) == 0) && (received || len(f.receivers) == 0)
	}
	return sent || received
}

// errEnough ends a search once it has found count frames.
var errEnough = errors.New("enough frames were found")

// parityFilter answers trace_filter: the frames of a range of blocks.
func (a *API) parityFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	filter := parameter.Decode(&args, 0, parseTraceFilter)
	if args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	// Both ends are resolved in the same view, so the range is on one chain.
	_, first, err := view.Resolve(ctx, filter.from)
	if err != nil {
		return out, err
	}
	view, last, err := view.Resolve(ctx, filter.to)
	if err != nil {
		return out, err
	}
	if filter.from.Tag == chain.Earliest && first > last { // it ends before the first block that is stored
		if err := view.CheckEarliest(last); err != nil {
			return out, err
		}
	}
	if first > last {
		return out, jsonrpc.InvalidArgument(0, fmt.Sprintf("fromBlock %d is after toBlock %d", first, last))
	}
	frames := frameList{out: append(out, '['), room: jsonrpc.RoomFor(ctx, out)}
	if view.HasTraces() {
		err = a.findFrames(ctx, view, filter.indexed(first, last), &frames)
	} else {
		err = a.scanFrames(ctx, view, &filter, first, last, &frames)
	}
	if err != nil {
		return out, err
	}
	return append(frames.out, ']'), nil
}

// indexed returns the filter of the trace index that selects the same frames in a range of
// blocks.
func (f *traceFilter) indexed(first, last uint64) *query.TraceFilter {
	indexed := &query.TraceFilter{
		From: first, To: last, Senders: f.senders, Receivers: f.receivers, Both: f.intersection,
		Skip: f.after, Max: query.AllTraces,
	}
	if f.count != nil {
		indexed.Max = *f.count
	}
	return indexed
}

// findFrames adds the frames that a filter selects by the trace index. Only transactions with
// such frames are executed.
func (a *API) findFrames(ctx context.Context, view *query.View, filter *query.TraceFilter, frames *frameList) error {
	limit := maxFrames
	if filter.To-filter.From < wholeRange {
		limit = math.MaxInt
	}
	found, err := view.FindTraces(ctx, filter, limit)
	if tooMany := (*query.TooManyTraces)(nil); errors.As(err, &tooMany) {
		if filter.Skip == 0 {
			tooMany.To, tooMany.Fits = max(tooMany.To, tooMany.From+wholeRange-1), true
		}
		return tooManyFrames(tooMany)
	}
	ahead := view.SearchAhead(ctx, len(found), func(ctx context.Context, i int) (uint64, []int, error) {
		counts, err := view.TraceCounts(ctx, found[i].Number)
		if err != nil {
			return 0, nil, err
		}
		return found[i].Number, tracedTransactions(counts.Ends, found[i].Positions), nil
	})
	defer ahead.Stop()
	for i := 0; i < len(found) && err == nil; i++ {
		if err = a.framesAt(ctx, view, found[i], frames, frames.add); err == nil {
			ahead.Traced(i, frames.ranAside)
		}
	}
	return err
}

// tooManyFrames is the error if a filter matches more frames than the limit. Its data says
// what to ask instead, in the words of eth_getLogs where a range fits.
func tooManyFrames(e *query.TooManyTraces) *jsonrpc.Error {
	answer := &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: e.Error(), Data: "Use count and after to get them in pages."}
	if e.Fits {
		answer.Data = fmt.Sprintf("Try with this block range [%#x, %#x].", e.From, e.To)
	}
	return answer
}

// scanFrames adds the frames that a filter selects in a network without a trace index: it
// executes every block of the range.
func (a *API) scanFrames(ctx context.Context, view *query.View, filter *traceFilter, first, last uint64, frames *frameList) (err error) {
	skip := filter.after
	if filter.count != nil && *filter.count == 0 {
		return nil
	}
	ahead := view.SearchAhead(ctx, int(min(last-first, math.MaxInt32))+1, func(_ context.Context, i int) (uint64, []int, error) {
		return first + uint64(i), nil, nil
	})
	defer ahead.Stop()
	for number := first; number <= last && err == nil; number++ {
		err = a.eachFrame(ctx, view, number, frames, func(frame *trace.Frame) error {
			if !filter.matches(frame) {
				return nil
			}
			if skip > 0 {
				skip--
				return nil
			}
			if err := frames.add(frame); err != nil {
				return err
			}
			if filter.count != nil && uint64(frames.len) == *filter.count {
				return errEnough // the next match may be many blocks away
			}
			return nil
		})
		if err == nil {
			ahead.Traced(int(number-first), frames.ranAside)
		}
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
