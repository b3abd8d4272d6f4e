// Package node is a client for Ethereum JSON-RPC nodes over HTTP or WebSocket. It fetches
// blocks and pending transactions, and sends transactions.
//
// Nodes are not trusted. The package guarantees only that the header of a returned block has
// the requested hash or number; execution verifies the body and the block as a whole. A
// response that no honest node could give is an [InvalidError]. All other errors, such as a
// timeout or a missing block, may be temporary.
//
// Whatever a node does, the time and memory for a response are bounded. The memory bound of a
// batch is that of a single response. Errors never contain the URL, which may hold an API key.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"ashlar/endpoint"

	"github.com/ethereum/go-ethereum/rpc"
)

// ErrNotFound means that the node does not have the requested object.
var ErrNotFound = errors.New("the node does not have it")

// InvalidError is a response that no honest node could give.
type InvalidError struct {
	What string // what was requested
	Err  error  // what is wrong with the response
}

func (e *InvalidError) Error() string {
	const most = 300 // characters: the reason may repeat what the node has sent
	return fmt.Sprintf("invalid answer, %s: %.*v", e.What, most, e.Err)
}

func (e *InvalidError) Unwrap() error { return e.Err }

const (
	// answerTime is the timeout of a request.
	answerTime = 20 * time.Second
	// answerBytes bounds the size of a response, or of all responses to a batch that is sent
	// one by one. The largest possible block, 10 MiB since Osaka, takes twice that in
	// hexadecimal, and slightly more as an object.
	answerBytes = 64 << 20
)

// Client is a client of one node. It connects on first use, and reconnects when the
// connection is lost. It is safe for concurrent use.
type Client struct {
	address string
	url     *url.URL // the address
	name    string
	http    *http.Client
	most    int64 // maximum bytes of the responses to a batch
	wait    int   // maximum bytes of the messages of a subscription that wait

	dialing sync.Mutex
	rpc     *rpc.Client // guarded by dialing; nil before first use

	unsupported features // as far as requests have shown
}

// New returns a client for a node with a URL of the scheme http, https, ws or wss.
func New(address string) (*Client, error) {
	u, err := endpoint.Parse(address, Schemes()...)
	if err != nil {
		return nil, err
	}
	transport := &boundedTransport{to: endpoint.Transport(), most: answerBytes}
	return &Client{address: address, url: u, name: u.Scheme + "://" + u.Host, http: &http.Client{Transport: transport}, most: answerBytes, wait: inboxBytes}, nil
}

// Schemes returns the URL schemes that a node may have.
func Schemes() []string { return []string{"http", "https", "ws", "wss"} }

// Name returns the URL without credentials, path and query, which may be secret.
func (c *Client) Name() string { return c.name }

// Close cancels requests in progress and closes the connection.
func (c *Client) Close() {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.rpc != nil {
		c.rpc.Close()
		c.rpc = nil
	}
	c.http.CloseIdleConnections()
}

// errConnect means that there is no connection to the node, so a call has not been sent.
var errConnect = errors.New("connect")

// isUnsent reports whether a call failed because there was no connection to the node.
func isUnsent(err error) bool {
	var dial *net.OpError
	return errors.Is(err, errConnect) || errors.As(err, &dial) && dial.Op == "dial"
}

// overHTTP reports whether each call is an HTTP request, and not a message on a WebSocket.
func (c *Client) overHTTP() bool { return strings.HasPrefix(c.name, "http") }

// isThrottled reports whether a node, or a proxy before it, wants fewer requests.
func isThrottled(err error) bool {
	var status rpc.HTTPError
	return errors.As(err, &status) && status.StatusCode == http.StatusTooManyRequests
}

// connect returns the connection, and creates it if necessary.
func (c *Client) connect(ctx context.Context) (*rpc.Client, error) {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.rpc != nil {
		return c.rpc, nil
	}
	dialed, err := rpc.DialOptions(ctx, c.address, rpc.WithHTTPClient(c.http), rpc.WithWebsocketMessageSizeLimit(answerBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnect, c.shown(err))
	}
	c.rpc = dialed
	return dialed, nil
}

// call makes one call.
func (c *Client) call(ctx context.Context, result any, method string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	connection, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := connection.CallContext(ctx, result, method, args...); err != nil {
		return fmt.Errorf("%s: %w", method, c.shown(err))
	}
	return nil
}

// shownBytes is how much of an error is shown.
const shownBytes = 200

// shown returns an error of a request with a text that is short and has no key of the URL, whatever the node has sent.
func (c *Client) shown(err error) error {
	return endpoint.Shown(endpoint.WithoutURL(err), c.url, shownBytes)
}

// batch makes calls in a batch, or one by one if the node does not support batches. It returns
// an error if the batch as a whole fails; errors of single calls are in their Error fields.
func (c *Client) batch(ctx context.Context, calls []rpc.BatchElem) error {
	if len(calls) > 1 && !c.unsupported.has(batches) {
		if err := c.batchOnce(ctx, calls); !refuses(err) {
			return err
		}
	}
	if err := c.oneByOne(ctx, calls); err != nil {
		return err
	}
	if len(calls) > 1 {
		c.unsupported.add(batches)
	}
	return nil
}

// oneByOne makes calls one after the other. Once the total size of responses exceeds the
// limit, the remaining calls get an error.
func (c *Client) oneByOne(ctx context.Context, calls []rpc.BatchElem) error {
	left := c.most
	for i := range calls {
		call := &calls[i]
		var answer json.RawMessage
		if left >= 0 {
			call.Error = c.call(ctx, &answer, call.Method, call.Args...)
			left -= int64(len(answer))
		}
		switch {
		case left < 0:
			call.Error = fmt.Errorf("%s: the responses exceed %d bytes in total", call.Method, c.most)
		case call.Error == nil:
			if err := json.Unmarshal(answer, call.Result); err != nil {
				return fmt.Errorf("%s: %w", call.Method, err)
			}
		case !refuses(call.Error):
			return call.Error
		}
	}
	return nil
}

func (c *Client) batchOnce(ctx context.Context, calls []rpc.BatchElem) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	connection, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := connection.BatchCallContext(ctx, calls); err != nil {
		return fmt.Errorf("batch of %s: %w", calls[0].Method, c.shown(err))
	}
	for i := range calls {
		if err := calls[i].Error; err != nil {
			calls[i].Error = c.shown(err)
		}
	}
	return nil
}

// refuses reports whether err is the node's response to a request, rather than the lack of
// one.
func refuses(err error) bool {
	var answered rpc.Error
	if errors.As(err, &answered) {
		return true
	}
	var status rpc.HTTPError
	if !errors.As(err, &status) {
		return false
	}
	busy := status.StatusCode == http.StatusRequestTimeout || status.StatusCode == http.StatusTooManyRequests
	return status.StatusCode/100 == 4 && !busy
}
