// Package api answers the JSON-RPC methods of forwarded networks. It decodes the parameters,
// and asks package query about the block that they name. It executes nothing.
//
// Who answers depends on the method:
//
//	blocks, transactions, logs  nodes; package check recomputes it if the network is checked
//	state, calls                nodes, as of the block
//	eth_blockNumber, filters,   this server, from the head that package ingest follows
//	subscriptions
//	chain ID, version, web3_    this server
//	[Config.Allowed]            nodes, with the parameters as they are
//
// Errors that clients can act on are translated to a [jsonrpc.Error]. They do not name nodes,
// which are the operator's.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/feed"
	"ashlar/forwarded/check"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/upstream"
)

// Config configures an API.
type Config struct {
	ClientVersion string // answers web3_clientVersion
	// ChainID returns the chain's ID; 0: it is not known yet.
	ChainID func() uint64
	// Allowed are further methods that are passed to the nodes as they are.
	Allowed []string
	Filters feed.Limits
	Log     *slog.Logger     // nil: slog.Default
	LogTime time.Duration    // of eth_getLogs; 0: 10 seconds
	Now     func() time.Time // nil: time.Now
}

// API answers requests about one network. It is safe for concurrent use.
type API struct {
	chain   *query.Chain
	config  Config
	samples jsonrpc.Samples[sample]

	publisher *publisher
}

// New returns the API of a chain. Subscriptions and filters also need Run.
func New(chain *query.Chain, config Config) *API {
	return &API{chain: chain, config: config, publisher: newPublisher(chain, config)}
}

// Methods describes all methods.
func (a *API) Methods() (*jsonrpc.Methods, error) {
	d := a.described()
	all := slices.Concat(a.chainMethods(d), a.blockMethods(d), a.transactionMethods(d), a.stateMethods(d), a.feeMethods(d), a.logMethods(d), a.eventMethods(), a.feedMethods(d))
	for i := range all {
		if all[i].Cost.Weight == jsonrpc.LightWeight {
			all[i].Cost = waiting(all[i].Cost.Credits)
		}
	}
	all = append(all, a.ownMethods(d)...)
	all = append(all, a.allowedMethods(all)...)
	if a.chain != nil && a.chain.IsChecked() {
		a.check(all)
	}
	for i := range all {
		all[i].Handler = all[i].Handler.Translated(translate)
	}
	return jsonrpc.NewMethods(all...)
}

// appendResult appends what a node sent, if there is room for it.
func appendResult(ctx context.Context, out []byte, result json.RawMessage) ([]byte, error) {
	if err := jsonrpc.RoomFor(ctx, out).Check(len(out) + len(result)); err != nil {
		return out, err
	}
	return append(out, result...), nil
}

// maxMessage bounds the text of a node's error.
const maxMessage = 1024

// translate converts errors that clients can act on to [jsonrpc.Error].
func translate(err error) error {
	var known *jsonrpc.Error
	var node *upstream.NodeError
	var tooMany *chain.TooManyLogs
	var aside *upstream.AsideError
	unresolved := unresolvedBlock(err)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooMany):
		return eth.TooManyLogs(tooMany)
	case unresolved != nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: unresolved.Error()}
	case errors.Is(err, upstream.ErrPruned):
		return errPruned
	case errors.Is(err, upstream.ErrUnsupported):
		return errUnsupported
	case errors.Is(err, check.ErrUncles):
		return errUncles
	case errors.Is(err, check.ErrTransactions):
		return errTransactions
	case errors.Is(err, check.ErrOutcomes):
		return errOutcomes
	case errors.As(err, &aside):
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: aside.Error() + ": try again later"}
	case errors.Is(err, upstream.ErrTooLarge):
		return errTooLarge
	case errors.Is(err, upstream.ErrCallTooLarge):
		return errCallTooLarge
	case errors.Is(err, upstream.ErrCallRefused):
		return errCallRefused
	case errors.Is(err, upstream.ErrUncertain):
		return errUncertain
	case errors.Is(err, upstream.ErrUnavailable):
		return errUnavailable
	case errors.As(err, &node):
		return translateNode(node)
	}
	return err
}

var (
	errPruned      = &jsonrpc.Error{Code: jsonrpc.CodePruned, Message: jsonrpc.PrunedMessage}
	errUnsupported = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the method is not available: no upstream node has it"}
)

// errUnavailable has no details: they name nodes, which are the operator's.
var errUnavailable = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "no upstream node can answer now: try again later"}

// errUncertain is about a call that changes something and was sent to one node.
var errUncertain = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "the upstream node has not answered: it may or may not have done what the call asks for"}

// errTooLarge is about the logs of one block: a longer range is halved first.
var errTooLarge = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "the answer of the upstream node is too large: ask for less"}

// errCallTooLarge is about params, such as overrides: nodes and their proxies have limits of their own.
var errCallTooLarge = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "the call is too large for the upstream nodes: send less data"}

// errCallRefused is about a call that nodes, or firewalls before them, refuse without a JSON-RPC error.
var errCallRefused = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "the upstream nodes refuse the call: it may contain what they do not accept"}

// Errors about blocks that package check refuses.
var (
	errUncles       = &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "the block has uncles, so it cannot be checked by its header"}
	errTransactions = &jsonrpc.Error{
		Code: jsonrpc.CodeServer, Message: "the block has a transaction of an unknown type or without a valid signature, so it cannot be checked by its header",
	}
	errOutcomes = &jsonrpc.Error{
		Code: jsonrpc.CodeServer, Message: "the nodes' receipts of the block may lack the state roots that receipts had before Byzantium, so they cannot be checked by its header",
	}
)

// unresolvedBlock returns why a parameter names no block, if an error wraps that, else nil.
func unresolvedBlock(err error) error {
	for _, kind := range []error{chain.ErrUnknownBlock, chain.ErrNotCanonical, chain.ErrNoSafe, chain.ErrNoFinalized} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// translateNode converts a node's error to the form of the specification.
func translateNode(e *upstream.NodeError) *jsonrpc.Error {
	if reverted := translateRevert(e); reverted != nil {
		return reverted
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: e.Message[:min(len(e.Message), maxMessage)]}
	switch upstream.Meaning(e) {
	case upstream.MeansUnsupported:
		return errUnsupported
	case upstream.MeansPruned:
		if !upstream.LacksBlock(e) {
			return errPruned
		}
	case upstream.MeansFailure:
		return errUnavailable
	}
	simulation := e.Code <= -38000 && e.Code > -39000 // of eth_simulateV1
	if simulation || slices.Contains([]int{jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, jsonrpc.CodeTooLarge}, e.Code) {
		out.Code = e.Code
	}
	var text string
	if json.Unmarshal(e.Data, &text) == nil && text != "" && len(text) <= maxMessage {
		out.Data = text
	}
	return out
}

// appendQuantity appends a number in hexadecimal, as a string.
func appendQuantity(out []byte, n uint64) []byte {
	return append(strconv.AppendUint(append(out, `"0x`...), n, 16), '"')
}

// waiting is the cost of a call that waits for a node, or for the first head, and keeps no processor busy, whatever it
// costs the node. There are only two slots of heavy calls for a processor, so a node that answers after 300 ms would
// bound an account to a few of them a second.
func waiting(credits int) jsonrpc.Cost { return jsonrpc.Waiting(credits) }

// recomputing is the cost of a call of which the answer is recomputed if the network is checked.
func (a *API) recomputing(credits int) jsonrpc.Cost {
	if a.chain != nil && a.chain.IsChecked() {
		return jsonrpc.Recomputing(credits)
	}
	return waiting(credits)
}

// credits returns the price of a passed method.
func credits(method string) jsonrpc.Cost {
	if strings.HasPrefix(method, "debug_") || strings.HasPrefix(method, "trace_") {
		return waiting(500)
	}
	return waiting(jsonrpc.UsualCredits)
}
