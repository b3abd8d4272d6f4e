package engine

import (
	"fmt"

	"ashlar/jsonrpc"
)

// The error codes of the Engine API, in addition to those of JSON-RPC.
const (
	codeUnknownPayload    = -38001
	codeForkchoiceState   = -38002
	codePayloadAttributes = -38003
	codeTooLargeRequest   = -38004
	codeUnsupportedFork   = -38005
	codeTooDeepReorg      = -38006
)

// detail is the data of an error. The specification defines it for one code only, but
// clients log it with every error.
type detail struct {
	Err string `json:"err"`
}

func fault(code int, message, why string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message, Data: detail{why}}
}

func invalidParams(why string) *jsonrpc.Error {
	return fault(jsonrpc.CodeInvalidParams, "Invalid params", why)
}

func unsupportedFork(why string) *jsonrpc.Error {
	return fault(codeUnsupportedFork, "Unsupported fork", why)
}

const attributesRefused = "Invalid payload attributes"

func invalidAttributes(why string) *jsonrpc.Error {
	return fault(codePayloadAttributes, attributesRefused, why)
}

// tooLarge is the answer to a call that asks for a number of things of a kind.
func tooLarge(count uint64, kind string, most int) *jsonrpc.Error {
	return fault(codeTooLargeRequest, "Too large request", fmt.Sprintf("%d %s (want at most %d)", count, kind, most))
}
