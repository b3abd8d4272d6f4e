package eth

import (
	"fmt"
	"time"

	"ashlar/chain"
	"ashlar/jsonrpc"
)

// The limits of eth_getLogs.
const (
	MaxLogs    = 10_000
	MaxLogTime = 10 * time.Second
)

// The errors of methods that search logs, about the blocks of a filter.
var (
	ErrLogRange       = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid block range params"}
	ErrLogsBeyondHead = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "block range extends beyond current head block"}
	ErrLogBlock       = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "unknown block"}
)

// LogErrors returns the errors of methods that search logs, followed by those that a family has besides.
func LogErrors(more ...*jsonrpc.Error) []*jsonrpc.Error {
	return append([]*jsonrpc.Error{
		TooManyLogs(&chain.TooManyLogs{Limit: MaxLogs, From: 1, To: 47, Fits: true}), SlowLogs(1, 47),
		ErrLogRange, ErrLogsBeyondHead, ErrLogBlock,
	}, more...)
}

// TooManyLogs is the error if a filter matches more logs than the limit. Indexers look for the sentence in data
// and continue with the range that it suggests.
func TooManyLogs(e *chain.TooManyLogs) *jsonrpc.Error {
	answer := &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: e.Error()}
	if e.Fits {
		answer.Data = suggestion(e.From, e.To)
	}
	return answer
}

// SlowLogs is the error if a search in a range of blocks, both ends included, takes too long. Its data suggests
// the first half of the range, in the words of [TooManyLogs]: indexers look for them, and otherwise send the same
// request again and again.
func SlowLogs(first, last uint64) *jsonrpc.Error {
	answer := &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: "query timeout exceeded"}
	if first < last {
		answer.Data = suggestion(first, first+(last-first)/2)
	}
	return answer
}

func suggestion(first, last uint64) string {
	return fmt.Sprintf("Try with this block range [%#x, %#x].", first, last)
}
