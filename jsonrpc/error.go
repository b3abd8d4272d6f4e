package jsonrpc

import "fmt"

// The codes of JSON-RPC 2.0 and those that Ethereum clients expect beside them
// (EIP-1474 and what geth and the large providers send).
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeServer         = -32000 // state at an unknown block, failed execution
	CodeNotFound       = -32001 // a resource that the block does not have
	CodeTimeout        = -32002 // the request's time was over before the call was answered
	CodeForbidden      = -32002 // a rule of the key does not allow the call; HTTP status 403
	CodeTooLarge       = -32003 // an answer that is over the limit, or does not fit its batch
	CodeLimitExceeded  = -32005 // result cap, time, rate
	CodeReverted       = 3      // the EVM executed REVERT
	CodePruned         = 4444   // history that this store does not hold
)

// Error is an error as a client reads it. Data is left out when nil, otherwise
// it must be a JSON value that encodes without error: nearly always a string.
type Error struct {
	Code    int
	Message string
	Data    any
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error with a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidArgument says why the argument at position n, counted from 0, is not accepted.
func InvalidArgument(n int, why string) *Error {
	return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("invalid argument %d: %s", n, why)}
}
