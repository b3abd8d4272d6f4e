// Package node reads a Starknet network's blocks from a node over JSON-RPC, by versions 0.6 to
// 0.10 of Starknet's specification, and follows the node's chain.
//
// Neither the node nor the connection is trusted. Responses are bounded in size and time. A
// block must be the requested one, have the declared numbers of transactions and events, and
// pass the check in [Options]. Requests that fail in any of these ways are retried with
// exponential backoff and jitter. Only errors that a retry cannot fix end the retries: the node
// denies access, does not know a method, or is on another chain.
package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"ashlar/endpoint"
	"ashlar/starknet"
)

// Options configure a Node. Zero values stand for the defaults.
type Options struct {
	URL     string        // http or https; it may contain an API key and is never logged
	ChainID starknet.Felt // expected chain; zero: any

	// Check validates each block. It is called by several goroutines concurrently. Its errors
	// are attributed to the node. Nil: no check.
	Check func(*starknet.Block) error

	Parallel     int           // concurrent requests for blocks; 4
	Poll         time.Duration // between requests for the head; 2 s
	Timeout      time.Duration // of a request, including the response body; 60 s
	AnswerBytes  int64         // maximum size of a response, decompressed; 64 MiB
	FirstPause   time.Duration // before the first retry; 250 ms
	LongestPause time.Duration // between retries; 30 s

	HTTP   *http.Client // nil: a new one
	Logger *slog.Logger // nil: slog.Default()
}

// Node is a client of one node. It is safe for concurrent use.
type Node struct {
	options Options
	url     *url.URL // the one of options
	record  record
}

// ErrNotFound means that the node does not have a block.
var ErrNotFound = errors.New("the node has no such block")

// errCheck means that a block failed the check of [Options].
var errCheck = errors.New("the block is invalid")

// ErrOtherChain means that the node is not on the expected chain.
var ErrOtherChain = errors.New("the node is of another chain")

// New returns a client. It does not connect yet.
func New(options Options) (*Node, error) {
	parsed, err := url.Parse(options.URL)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, errors.New("node: invalid URL (want http://HOST… or https://HOST…)") // without the URL: it may contain a key
	}
	for _, bound := range []struct {
		name  string
		given int64
	}{
		{"blocks at a time", int64(options.Parallel)}, {"time between polls", int64(options.Poll)}, {"timeout", int64(options.Timeout)},
		{"bytes of an answer", options.AnswerBytes}, {"first pause", int64(options.FirstPause)}, {"longest pause", int64(options.LongestPause)},
	} {
		if bound.given < 0 {
			return nil, fmt.Errorf("node: %s: found %d, expected more than 0, or 0 for the default", bound.name, bound.given)
		}
	}
	options.Parallel = cmp.Or(options.Parallel, 4)
	options.Poll = cmp.Or(options.Poll, 2*time.Second)
	options.Timeout = cmp.Or(options.Timeout, time.Minute)
	options.AnswerBytes = cmp.Or(options.AnswerBytes, 64<<20)
	options.FirstPause = cmp.Or(options.FirstPause, 250*time.Millisecond)
	options.LongestPause = max(cmp.Or(options.LongestPause, 30*time.Second), options.FirstPause)
	if options.HTTP == nil {
		transport := endpoint.Transport()
		transport.MaxIdleConnsPerHost = options.Parallel
		options.HTTP = &http.Client{
			Transport: transport,
			// Do not send the API key to the target of a redirect.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	n := &Node{options: options, url: parsed}
	n.rename(parsed.Host, options.Logger)
	return n, nil
}

// rename gives a node another name in its status and its log, before it is used.
func (n *Node) rename(name string, log *slog.Logger) {
	n.record.status.Name, n.options.Logger = name, log.With("node", name)
}
