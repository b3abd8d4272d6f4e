// Package node asks Ethereum JSON-RPC nodes for the blocks of a chain and for what
// waits to be in them, and passes transactions on, over HTTP or WebSocket.
//
// Nothing that a node says is believed. What this package promises of a block that
// it returns is that its header has the hash, or the number, that was asked for;
// whether the body is the one that the header names, and whether the block is
// right, is for execution to say. An answer that no honest node could give is an
// [InvalidError]. Everything else that goes wrong, an answer that does not come
// or says that the node does not have something, is another error, and may be over
// with the next attempt.
//
// Whatever a node does, an answer takes no more than a bounded time and a bounded
// memory, all that are asked for together no more memory than one, and no error tells
// the URL, which may hold a key.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/endpoint"

	"github.com/ethereum/go-ethereum/rpc"
)

// ErrNotFound says that the node does not have what was asked for.
var ErrNotFound = errors.New("the node does not have it")

// InvalidError says that an answer is none that an honest node could give.
type InvalidError struct {
	What string // that was asked for
	Err  error  // what is wrong with the answer
}

func (e *InvalidError) Error() string { return fmt.Sprintf("invalid answer, %s: %v", e.What, e.Err) }

func (e *InvalidError) Unwrap() error { return e.Err }

const (
	// answerTime is how long an answer may take.
	answerTime = 20 * time.Second
	// answerBytes bounds an answer, and all answers together where a batch is asked one
	// by one: the largest block of a chain, 10 MiB since Osaka, takes twice that in
	// hexadecimal, and somewhat more as an object.
	answerBytes = 64 << 20
)

// Client asks one node. It connects when it is first used, and again when the
// connection was lost. It may be used from many goroutines at once.
type Client struct {
	url  string
	name string
	http *http.Client
	most int64 // bytes of the answers to a batch

	dialing sync.Mutex
	rpc     *rpc.Client // guarded by dialing; nil until it is first used

	noRaw   atomic.Bool // the node does not offer blocks in their raw form
	noBatch atomic.Bool // nor answers to batches
}

// New makes the client of a node, given by a URL with the scheme http, https, ws or wss.
func New(address string) (*Client, error) {
	u, err := CheckURL(address)
	if err != nil {
		return nil, err
	}
	transport := &boundedTransport{to: http.DefaultTransport.(*http.Transport).Clone(), most: answerBytes}
	return &Client{url: address, name: u.Scheme + "://" + u.Host, http: &http.Client{Transport: transport}, most: answerBytes}, nil
}

// CheckURL says what is wrong with the URL of a node.
func CheckURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the URL of a node does not parse: %w", endpoint.WithoutURL(err))
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return nil, fmt.Errorf("the URL of a node has the scheme %q: expected http, https, ws or wss", u.Scheme)
	}
	if u.Host == "" {
		return nil, errors.New("the URL of a node names no host")
	}
	return u, nil
}

// Name is the URL without what may be secret: credentials, path and query.
func (c *Client) Name() string { return c.name }

// Close ends what is under way and closes the connection.
func (c *Client) Close() {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.rpc != nil {
		c.rpc.Close()
		c.rpc = nil
	}
	c.http.CloseIdleConnections()
}

// connect returns the connection, which is made if there is none yet.
func (c *Client) connect(ctx context.Context) (*rpc.Client, error) {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.rpc != nil {
		return c.rpc, nil
	}
	dialed, err := rpc.DialOptions(ctx, c.url, rpc.WithHTTPClient(c.http), rpc.WithWebsocketMessageSizeLimit(answerBytes))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", endpoint.WithoutURL(err))
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
		return fmt.Errorf("%s: %w", method, endpoint.WithoutURL(err))
	}
	return nil
}

// batch makes calls together, or one after the other where the node takes no
// batches. The error is that of all calls, those of single calls are in them.
func (c *Client) batch(ctx context.Context, calls []rpc.BatchElem) error {
	if len(calls) > 1 && !c.noBatch.Load() {
		if err := c.batchOnce(ctx, calls); !refuses(err) {
			return err
		}
	}
	if err := c.oneByOne(ctx, calls); err != nil {
		return err
	}
	if len(calls) > 1 {
		c.noBatch.Store(true)
	}
	return nil
}

// oneByOne makes calls one after the other. Their answers may be as large together as
// one to a batch: those from the first that is too much have an error.
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
			call.Error = fmt.Errorf("%s: the answers are larger than %d bytes together", call.Method, c.most)
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
		return fmt.Errorf("batch of %s: %w", calls[0].Method, endpoint.WithoutURL(err))
	}
	return nil
}

// refuses says whether an error is what the node has to say to a request, rather
// than that there is no answer.
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
