package events

import "ashlar/jsonrpc"

// The codes of the Starknet specification for calls that ask for events.
const (
	codeUnknownBlock = 24
	codePageSize     = 31
	codeNoBlocks     = 32
	codeToken        = 33
	codeTooManyKeys  = 34
)

var (
	errUnknownBlock = &jsonrpc.Error{Code: codeUnknownBlock, Message: "Block not found"}
	errPageSize     = &jsonrpc.Error{Code: codePageSize, Message: "Requested page size is too big"}
	errNoBlocks     = &jsonrpc.Error{Code: codeNoBlocks, Message: "There are no blocks"}
	errToken        = &jsonrpc.Error{Code: codeToken, Message: "The supplied continuation token is invalid or unknown"}
	errTooManyKeys  = &jsonrpc.Error{Code: codeTooManyKeys, Message: "Too many keys provided in a filter"}
)

// UnknownBlock returns the error for a block that the network does not hold. why, if
// not empty, becomes its data.
func UnknownBlock(why string) error {
	if why == "" {
		return errUnknownBlock
	}
	return &jsonrpc.Error{Code: codeUnknownBlock, Message: errUnknownBlock.Message, Data: why}
}

// NoBlocks returns the error for a network without blocks.
func NoBlocks() error { return errNoBlocks }
