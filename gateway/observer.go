package gateway

import (
	"context"
	"time"

	"ashlar/account/usage"
	"ashlar/jsonrpc"
)

// counting counts each call for the key that it was made with, and tells another
// observer of it.
type counting struct {
	next    jsonrpc.Observer // may be nil
	series  map[string]usage.Series
	unknown usage.Series // calls that name no method there is
}

func newCounting(next jsonrpc.Observer, u *usage.Usage, network string, methods *jsonrpc.Methods) *counting {
	c := &counting{next: next, series: make(map[string]usage.Series, methods.Len()), unknown: u.Series(network, "")}
	for method := range methods.All() {
		c.series[method.Name] = u.Series(network, method.Name)
	}
	return c
}

// of is as what a method is counted.
func (c *counting) of(method string) usage.Series {
	if s, ok := c.series[method]; ok {
		return s
	}
	return c.unknown
}

// Called implements jsonrpc.Observer.
func (c *counting) Called(ctx context.Context, method string, took time.Duration, code int) {
	if e := exchangeOf(ctx); e != nil {
		e.caller.usage.Called(c.of(method), took, code != 0)
	}
	if c.next != nil {
		c.next.Called(ctx, method, took, code)
	}
}
