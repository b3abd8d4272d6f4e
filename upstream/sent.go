package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
)

// UnconfirmedError is about a transaction that a node was sent and has not confirmed: it may have taken it. The text
// is for clients, so it names no node, and another Ashlar in front passes it on: none of its words means that
// the call may be made elsewhere, or that a wallet has to sign another transaction.
type UnconfirmedError struct{ why string }

// The words of an UnconfirmedError before and after its reason.
const (
	unconfirmed = "no node confirmed the transaction: one "
	mayBeTaken  = " and may have taken it: sending the same transaction again is harmless"
)

// The reasons of an UnconfirmedError.
const (
	wasLate   = "did not answer in time"
	hasFailed = "failed"
	brokeOff  = "broke off before its answer"
)

func (e *UnconfirmedError) Error() string { return unconfirmed + e.why + mayBeTaken }

// Unconfirmed returns the error for the client whose transaction a node may have taken. err is how sending it failed.
func Unconfirmed(err error) *UnconfirmedError {
	var node *NodeError
	var status *httpError
	switch {
	case errors.As(err, &node) && isUnconfirmed(node): // by another Ashlar
		return &UnconfirmedError{strings.TrimSuffix(strings.TrimPrefix(node.Message, unconfirmed), mayBeTaken)}
	case isLate(err):
		return &UnconfirmedError{wasLate}
	case errors.As(err, &node), errors.As(err, &status):
		return &UnconfirmedError{hasFailed}
	}
	return &UnconfirmedError{brokeOff}
}

// isLate reports whether a node, or a proxy before it, has failed because of the time that an answer takes.
func isLate(err error) bool {
	var status *httpError
	if errors.As(err, &status) {
		return status.status == http.StatusRequestTimeout || status.status == http.StatusGatewayTimeout || status.status == statusOriginTimeout
	}
	var node *NodeError
	if errors.As(err, &node) {
		return containsAny(strings.ToLower(node.Message), []string{"timeout", "timed out", "deadline exceeded"})
	}
	var network net.Error
	return errors.Is(err, errSlow) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// isUnconfirmed reports whether an error object is another Ashlar's [UnconfirmedError].
func isUnconfirmed(e *NodeError) bool {
	said := func(why string) bool { return e.Message == unconfirmed+why+mayBeTaken }
	return slices.ContainsFunc([]string{wasLate, hasFailed, brokeOff}, said)
}

// IsKnown reports whether a node refuses a transaction because it has it.
func IsKnown(e *NodeError) bool {
	text := strings.ToLower(e.Message)
	return strings.Contains(text, "already known") || strings.HasPrefix(text, "alreadyknown") || strings.HasPrefix(text, "known transaction")
}

// MayBeDone reports whether a node that answers a call that changes something with an error object may have done it
// nevertheless: it has failed. geth, for example, goes on after it has answered that the time is over.
func MayBeDone(method string, e *NodeError) bool { return mayBeDone(method, nil, e) }

func mayBeDone(method string, params json.RawMessage, e *NodeError) bool {
	return isUnconfirmed(e) || classify(method, params, e) == failed && !containsAny(plain(e.Message), ofAshlar)
}

// mayBeDone reports whether a node that has failed at a call that changes something may have done it.
func (c *Call) mayBeDone(err error) bool {
	var node *NodeError
	if errors.As(err, &node) {
		return mayBeDone(c.Method, c.Params, node)
	}
	why, _ := c.faultOf(err)
	return why == failed && !undone(err)
}

// undone reports whether a call that has failed cannot have been done: it did not reach the node, or was refused
// before it.
func undone(err error) bool {
	return refuses(err) || errors.Is(err, ErrCallTooLarge) || errors.Is(err, errUnsent)
}

// errUnsent means that a call did not reach the node, because there was no connection to it.
var errUnsent = errors.New("there is no connection to the node")
