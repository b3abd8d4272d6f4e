package events

import "ashlar/jsonrpc"

// The codes of the Starknet specification that a question about events can be
// answered with.
const (
	codeUnknownBlock = 24
	codePageSize     = 31
	codeNoBlocks     = 32
	codeToken        = 33
	codeTooManyKeys  = 34
)

// UnknownBlock says that a block is not there, and perhaps why.
func UnknownBlock(why string) error {
	e := &jsonrpc.Error{Code: codeUnknownBlock, Message: "Block not found"}
	if why != "" {
		e.Data = why
	}
	return e
}

func errPageSize() error {
	return &jsonrpc.Error{Code: codePageSize, Message: "Requested page size is too big"}
}

// NoBlocks says that the network is empty.
func NoBlocks() error {
	return &jsonrpc.Error{Code: codeNoBlocks, Message: "There are no blocks"}
}

func errToken() error {
	return &jsonrpc.Error{Code: codeToken, Message: "The supplied continuation token is invalid or unknown"}
}

func errTooManyKeys() error {
	return &jsonrpc.Error{Code: codeTooManyKeys, Message: "Too many keys provided in a filter"}
}
