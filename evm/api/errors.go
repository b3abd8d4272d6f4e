package api

import (
	"errors"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/pool"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/upstream"
)

// translate converts errors that clients can act on to [jsonrpc.Error]. All others become
// internal errors.
func translate(err error) error {
	var known *jsonrpc.Error
	if errors.As(err, &known) {
		return known
	}
	var traced *trace.Error
	if errors.As(err, &traced) {
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: traced.Error()}
	}
	for _, kind := range []error{
		execute.ErrGenesis, query.ErrUnknownBlock, query.ErrUnknownHash, query.ErrNotCanonical, query.ErrNoFinalized, query.ErrNoSafe, query.ErrHeadState, pool.ErrNoHead, execute.ErrUnknownFork,
	} {
		if errors.Is(err, kind) {
			return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: kind.Error()}
		}
	}
	if errors.Is(err, query.ErrBeyondHead) || errors.Is(err, query.ErrPercentile) {
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: err.Error()}
	}
	if pruned := (*archive.Pruned)(nil); errors.As(err, &pruned) {
		return jsonrpc.Errorf(jsonrpc.CodePruned, "pruned history unavailable: %v", pruned)
	}
	if refused := unproven(err); refused != nil {
		return refused
	}
	if errors.Is(err, evm.ErrMissing) || upstream.LacksHistory(err) {
		return errPruned
	}
	return err
}

// unproven returns the error for an answer that a network with proven state cannot give, nil if
// err has another cause. What nodes say is for the log: it may name them.
func unproven(err error) *jsonrpc.Error {
	var node *upstream.NodeError
	var aside *upstream.AsideError
	var why error
	if errors.As(err, &aside) {
		why = aside
	}
	for _, kind := range []error{evm.ErrUnnamed, upstream.ErrLie, upstream.ErrUnavailable, upstream.ErrUnsupported} {
		if why == nil && errors.Is(err, kind) {
			why = kind
		}
	}
	if why == nil && errors.As(err, &node) && !upstream.LacksHistory(err) {
		why = upstream.ErrUnavailable
	}
	if why == nil {
		return nil
	}
	message := "the answer cannot be proven: " + why.Error()
	if errors.Is(why, upstream.ErrUnavailable) || errors.Is(why, upstream.ErrLie) {
		message += ": try again later"
	}
	if away := (*archive.Away)(nil); errors.As(err, &away) {
		message = away.Place() + ", and " + message
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: message}
}

// errPruned is the error for history that no node has.
var errPruned = &jsonrpc.Error{Code: jsonrpc.CodePruned, Message: jsonrpc.PrunedMessage}

// unknown reports whether err means that the requested block does not exist, for methods
// that then answer null.
func unknown(err error) bool {
	return errors.Is(err, query.ErrUnknownBlock) || errors.Is(err, query.ErrUnknownHash)
}
