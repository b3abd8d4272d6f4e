package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
)

// UnconfirmedError is about a transaction that a node was sent and has not confirmed: it may have taken it. The text
// is for clients, so it names no node, and another Ashlar in front passes it on: none of its words means that
// the call may be made elsewhere, or that a wallet has to sign another transaction.
type UnconfirmedError struct{ why string }

func (e *UnconfirmedError) Error() string {
	return "no node confirmed the transaction: one " + e.why + " and may have taken it: sending the same transaction again is harmless"
}

// Unconfirmed returns the error for the client whose transaction a node may have taken. err is how sending it failed.
func Unconfirmed(err error) *UnconfirmedError {
	var node *NodeError
	var status *httpError
	switch {
	case isLate(err):
		return &UnconfirmedError{"did not answer in time"}
	case errors.As(err, &node), errors.As(err, &status):
		return &UnconfirmedError{"failed"}
	}
	return &UnconfirmedError{"broke off before its answer"}
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

// mayBeDone reports whether a node that has failed at a call that changes something may have done it.
func (c *Call) mayBeDone(err error) bool {
	if why, _ := c.faultOf(err); why != failed || undone(err) {
		return false
	}
	var node *NodeError
	return !errors.As(err, &node) || !containsAny(plain(node.Message), ofAshlar)
}

// undone reports whether a call that has failed cannot have been done: it did not reach the node, or was refused
// before it.
func undone(err error) bool {
	return refuses(err) || errors.Is(err, ErrCallTooLarge) || IsUnsent(err)
}

// IsUnsent reports whether a call did not reach the node, because there was no connection to it.
func IsUnsent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}
