package limit

import (
	"context"
	"errors"
)

// ErrMemory means that the account for which something is done may hold no more memory now.
var ErrMemory = errors.New("no memory left for bodies and answers")

// LenderKey is the context key of the [Lender] of a request.
type LenderKey struct{}

// Lender lends memory of an account to what is done for it apart from its request's own
// goroutine, such as to read the answer of a node. It is safe for concurrent use, also after
// the request has ended.
type Lender interface {
	// Lend returns an empty lease.
	Lend() Lease
}

// Borrow returns a lease on the memory of the account for which ctx is. Without one it is a
// lease that is not bounded.
func Borrow(ctx context.Context) Lease {
	if l, ok := ctx.Value(LenderKey{}).(Lender); ok {
		return l.Lend()
	}
	return Lease{}
}

// OnBehalf returns ctx with the lender of another context, which may end before it.
func OnBehalf(ctx, of context.Context) context.Context {
	if l, ok := of.Value(LenderKey{}).(Lender); ok {
		return context.WithValue(ctx, LenderKey{}, l)
	}
	return ctx
}
