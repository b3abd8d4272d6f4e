package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// hurries reports whether a call has only the brief time of a method that is hurried. mu is held.
func (n *node) hurries(c *Call, now time.Time) bool {
	r := n.methods[c.Method]
	return r != nil && now.Before(r.hurry) && !c.Once // a call that changes something may wait for a block
}

// within returns a context for a request, which has the brief time or all of it.
func (n *node) within(ctx context.Context, brief bool) (context.Context, context.CancelFunc) {
	if !brief {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, n.brief, errSlow)
}

// tookLong reports whether a node, or the server behind a proxy, did not answer in time.
func tookLong(ctx context.Context, err error) bool {
	var status *httpError
	if errors.As(err, &status) {
		return status.status == http.StatusGatewayTimeout || status.status == statusOriginTimeout
	}
	return errors.Is(context.Cause(ctx), errSlow)
}

// statusOriginTimeout is what Cloudflare answers for a server that takes too long.
const statusOriginTimeout = 524
