package gateway

import (
	"context"

	"ashlar/account/usage"
	"ashlar/jsonrpc"
)

// counting counts each call for its key, and then notifies another observer.
type counting struct {
	next    jsonrpc.Observer // may be nil
	series  map[string]usage.Series
	unknown usage.Series // calls of unknown methods
}

func newCounting(next jsonrpc.Observer, u *usage.Usage, network string, methods *jsonrpc.Methods) *counting {
	c := &counting{next: next, series: make(map[string]usage.Series, methods.Len()), unknown: u.Series(network, "")}
	for method := range methods.All() {
		c.series[method.Name] = u.Series(network, method.Name)
	}
	return c
}

// of returns the usage series of a method.
func (c *counting) of(method string) usage.Series {
	if s, ok := c.series[method]; ok {
		return s
	}
	return c.unknown
}

// Called implements jsonrpc.Observer.
func (c *counting) Called(ctx context.Context, done jsonrpc.Completed) {
	if e := exchangeOf(ctx); e != nil {
		e.observed = true
		cause := e.refusedCall
		e.refusedCall = 0
		if done.Fault == nil {
			e.caller.usage.Called(c.of(done.Method), done.Took, 0)
		} else {
			e.countFailure(c.of(done.Method), &done, cause)
		}
		e.watchCall(done.Method, done.Took, done.Code())
	}
	if c.next != nil {
		c.next.Called(ctx, done)
	}
}
