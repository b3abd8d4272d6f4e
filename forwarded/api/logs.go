package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// The limits of eth_getLogs.
const (
	maxLogs       = 10_000
	maxParameters = 5_000 // addresses and topics of a filter
	maxTopics     = 4     // a log has no more
	maxLogTime    = 10 * time.Second
)

// logFilter is the filter object of eth_getLogs.
type logFilter struct {
	query.Filter
	from, to query.BlockID
}

func (a *API) logMethods(p parameters) []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "eth_getLogs", Summary: "Returns the logs that match a filter.",
		Params: []jsonrpc.Param{p.filter}, Result: result("Log objects", schema.Array(object)), Errors: logErrors,
		Cost: jsonrpc.Heavy(50), Concerns: concerning(emitters), Handler: a.getLogs,
	}}
}

// logErrors are the errors of methods that search logs.
var logErrors = []*jsonrpc.Error{
	{Code: jsonrpc.CodeLimitExceeded, Message: "query returned more than 10000 results", Data: "Try with this block range [0x1, 0x2f]."},
	{Code: jsonrpc.CodeLimitExceeded, Message: "query timeout exceeded"},
	errRange, errBeyondHead,
}

var (
	errRange      = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid block range params"}
	errBeyondHead = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "block range extends beyond current head block"}
	errBlock      = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "unknown block"}
)

// emitters returns the contracts whose logs the filter in the first argument selects.
func emitters(params []byte) ([]common.Address, error) {
	args := readArguments(params, maxArguments, 1)
	filter := argument(&args, 0, parseFilter)
	return filter.Addresses, args.err
}

// getLogs answers eth_getLogs.
func (a *API) getLogs(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 1)
	filter := argument(&args, 0, parseFilter)
	if args.err != nil {
		return out, args.err
	}
	if err := filter.check(); err != nil {
		return out, err
	}
	return a.appendLogs(ctx, filter, out)
}

// check returns an error if a filter has too many addresses and topics.
func (f *logFilter) check() error {
	n := len(f.Addresses)
	for _, topics := range f.Topics {
		n += len(topics)
	}
	if n > maxParameters {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "too many addresses and topics in the filter (max %d, got %d)", maxParameters, n)
	}
	return nil
}

// appendLogs appends the array of the logs that a filter selects.
func (a *API) appendLogs(ctx context.Context, filter logFilter, out []byte) ([]byte, error) {
	view, err := a.chain.View(ctx)
	if err != nil {
		return out, err
	}
	if filter.Hash == nil {
		if err := filter.resolve(view); err != nil {
			return out, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(a.config.LogTime, maxLogTime))
	defer cancel()
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, '[')
	begin := len(out)
	err = a.chain.Logs(limited, view, &filter.Filter, maxLogs, func(log *query.Log) error {
		if len(out) > begin {
			out = append(out, ',')
		}
		out = append(out, log.JSON...)
		return room.Check(len(out))
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return out, &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "query timeout exceeded"}
	case err != nil && filter.Hash != nil && isUnknown(err):
		return out, errBlock
	}
	return append(out, ']'), err
}

// resolve finds the range of a filter in a view.
func (f *logFilter) resolve(view *forwarded.View) error {
	for _, end := range []struct {
		id query.BlockID
		to *uint64
	}{{f.from, &f.From}, {f.to, &f.To}} {
		block, err := query.Resolve(view, end.id)
		if errors.Is(err, query.ErrUnknownBlock) {
			block.Number, err = end.id.Number, nil
		}
		if err != nil {
			return err
		}
		*end.to = block.Number
	}
	switch {
	case f.From > f.To:
		return errRange
	case f.To > view.Head().Number:
		return errBeyondHead
	}
	return nil
}

// isUnknown reports whether a node says that it does not have a block.
func isUnknown(err error) bool {
	var node *upstream.NodeError
	translated := new(jsonrpc.Error)
	return errors.As(err, &node) && upstream.LacksBlock(node) || errors.As(translate(err), &translated) && translated.Code == jsonrpc.CodePruned
}

// tooManyLogs is the error if a filter matches more logs than the limit. Indexers look for
// the sentence in data and continue with the range that it suggests.
func tooManyLogs(e *query.TooManyLogs) *jsonrpc.Error {
	answer := &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: e.Error()}
	if e.Fits {
		answer.Data = fmt.Sprintf("Try with this block range [%#x, %#x].", e.From, e.To)
	}
	return answer
}
