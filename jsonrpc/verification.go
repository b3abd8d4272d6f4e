package jsonrpc

import (
	"context"
	"errors"
)

// Verification is how an answer was verified. A greater one is stronger.
type Verification uint8

const (
	// Unverified answers rest on what a node says, or say nothing about a chain.
	Unverified Verification = iota
	// ByHeader answers were recomputed from the header of a block that a node has named.
	ByHeader
	// Proven answers were computed here, from state and blocks proven for a header.
	Proven
	// Executed answers come from blocks that were executed or recomputed here.
	Executed
)

// String returns the verification as clients see it.
func (v Verification) String() string {
	return [...]string{"none", "header", "proven", "executed"}[v]
}

// VerifierKey is the context key of the [Verifier] of a request. A transport that
// shows clients how answers were verified sets it.
type VerifierKey struct{}

// Verifier records how the answers to a request were verified: the weakest verification of
// its calls. It is called by the goroutine that answers.
type Verifier interface {
	// Weaken records that an answer is verified no better than v.
	Weaken(v Verification)
}

// Weaken records that the answer to a call is verified no better than v. Without it, the
// answer is verified as [Method.Verified] says.
func Weaken(ctx context.Context, v Verification) {
	if to, ok := ctx.Value(VerifierKey{}).(Verifier); ok {
		to.Weaken(v)
	}
}

// Verifies reports whether the transport shows how the answer to a call was verified.
func Verifies(ctx context.Context) bool {
	_, ok := ctx.Value(VerifierKey{}).(Verifier)
	return ok
}

// FoundOnly returns a handler whose answers are verified only if something was found. Null
// is Unverified, because a block proves what it has and not that no block has a thing. So
// are errors, except those of code that was executed and reverted.
func (h Handler) FoundOnly() Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		result, err := h(ctx, params, out)
		var known *Error
		reverted := errors.As(err, &known) && known.Code == CodeReverted
		if err != nil && !reverted || err == nil && IsNull(result[len(out):]) {
			Weaken(ctx, Unverified)
		}
		return result, err
	}
}
