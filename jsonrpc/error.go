package jsonrpc

import "fmt"

// The error codes of JSON-RPC 2.0, and those that Ethereum clients also expect (EIP-1474,
// geth and the large providers).
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeServer         = -32000 // state at an unknown block, failed execution
	CodeNotFound       = -32001 // a resource that the block does not have
	CodeTimeout        = -32002 // the request timed out
	CodeForbidden      = -32002 // a rule of the key does not allow the call; HTTP status 403
	CodeTooLarge       = -32003 // an answer over the limit, alone or in its batch
	CodeLimitExceeded  = -32005 // result cap, time, rate
	CodeReverted       = 3      // the EVM executed REVERT
	CodeNotIncluded    = 4      // a transaction that was taken, but not included in time (EIP-7966)
	CodePruned         = 4444   // history that is not stored
	CodeClientLimit    = -38026 // a call asks for more than one may, as in geth
)

// PrunedMessage is the message of [CodePruned] if it is not known which history is stored. Proxies before several nodes look
// for words of it.
const PrunedMessage = "pruned history unavailable: block or historical state is not available"

// Codes of rejected simulations, from the specification of eth_simulateV1. Nodes of forwarded networks answer with all of
// them.
const (
	CodeNonceTooLow       = -38010
	CodeNonceTooHigh      = -38011
	CodeBaseFee           = -38012 // the fee is below the block's
	CodeIntrinsicGas      = -38013
	CodeInsufficientFunds = -38014
	CodeBlockGas          = -38015 // the block has too little gas left
	CodeBlockNumber       = -38020 // not in order
	CodeBlockTime         = -38021 // not in order
	CodePrecompileSelf    = -38022 // moved to its own address
	CodePrecompileTwice   = -38023 // two are moved to one address
	CodeNotEOA            = -38024 // the sender has code
	CodeInitCode          = -38025 // too long
)

// Error is an error as sent to a client. Data is omitted if nil; otherwise it must encode
// as JSON without error. It is nearly always a string.
type Error struct {
	Code    int
	Message string
	Data    any
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an Error with a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidArgument returns the error for an invalid argument at position n, counted from 0.
func InvalidArgument(n int, why string) *Error {
	return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("invalid argument %d: %s", n, why)}
}
