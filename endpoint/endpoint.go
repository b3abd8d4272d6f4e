// Package endpoint parses the URLs of upstream nodes, and keeps them out of errors and
// logs: many providers put an API key in the path. It also tells whether a request reached a node.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// Parse parses the URL of a node, which must have one of the schemes and a host.
func Parse(address string, schemes ...string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		return nil, fmt.Errorf("the URL of a node has no scheme (want one that begins with %s://, such as %s://192.0.2.1:8545)", strings.Join(schemes, "://, "), schemes[0])
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("parse the URL of a node: %w", WithoutURL(err))
	}
	if !slices.Contains(schemes, u.Scheme) {
		last := len(schemes) - 1
		return nil, fmt.Errorf("unknown scheme %q in the URL of a node (want %s or %s)", u.Scheme, strings.Join(schemes[:last], ", "), schemes[last])
	}
	if u.Host == "" {
		return nil, errors.New("the URL of a node has no host (want one such as http://192.0.2.1:8545)")
	}
	return u, nil
}

// Canonical returns a URL in the one form that URLs of the same node share: the host in lower case, without the
// port that its scheme has anyway, and with a path.
func Canonical(u *url.URL) string {
	c := *u
	c.Host = strings.ToLower(u.Host)
	for _, scheme := range []struct{ name, port string }{{"http", ":80"}, {"ws", ":80"}, {"https", ":443"}, {"wss", ":443"}} {
		if u.Scheme == scheme.name {
			c.Host = strings.TrimSuffix(c.Host, scheme.port)
		}
	}
	if c.Path == "" {
		c.Path = "/"
	}
	return c.String()
}

// WithoutURL removes the URL from an error of net/url or net/http. It returns other errors
// unchanged.
func WithoutURL(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}

// Traced returns a context for an HTTP request, and a function that says whether the request has got a connection.
// Without one, such as one with a valid certificate, nothing was sent. A request that is canceled just after it got a
// connection may still be sent.
func Traced(ctx context.Context) (traced context.Context, connected func() bool) {
	var got atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }}
	return httptrace.WithClientTrace(ctx, trace), got.Load
}
