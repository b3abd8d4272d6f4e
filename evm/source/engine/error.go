package engine

import "ashlar/jsonrpc"

// The errors of the Engine API, beside those of JSON-RPC.
const (
	codeUnknownPayload    = -38001
	codeForkchoiceState   = -38002
	codePayloadAttributes = -38003
	codeUnsupportedFork   = -38005
	codeTooDeepReorg      = -38006
)

// detail is the data of an error. The specification has it for one code only, but
// clients write it to their logs, where it helps.
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

func invalidAttributes(why string) *jsonrpc.Error {
	return fault(codePayloadAttributes, "Invalid payload attributes", why)
}
