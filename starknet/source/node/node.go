// Package node reads a Starknet network's blocks from a node over JSON-RPC, as Starknet's
// specification has it in its versions 0.6 to 0.10, and follows the node's chain.
//
// A node is not trusted, and neither is the way to it. What it answers is bounded
// in bytes and in time; a block must be the one that was asked for, have the
// numbers of transactions and events that it tells, and pass the check that
// [Options] name. Whatever falls short of that, as whatever does not arrive, is
// asked for again, after a pause that grows and is never the same twice. Only
// what a node will not answer otherwise ends the asking: that it does not let us
// in, does not know a method, or is of another chain.
package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"ashlar/starknet"
)

// Options say how to speak with a node. Zero values stand for the defaults.
type Options struct {
	URL     string        // of the node: http or https; it may hold a key and is never logged
	ChainID starknet.Felt // of the chain that the node must be of; zero: any

	// Check judges each block, for some goroutines at a time; nil: none does. Its
	// errors are taken for the node's fault.
	Check func(*starknet.Block) error

	Parallel     int           // blocks that are asked for at a time; 4
	Poll         time.Duration // between two questions for the head; 2 s
	Timeout      time.Duration // for an answer, its body included; 60 s
	AnswerBytes  int64         // of one answer, unzipped; 64 MiB
	FirstPause   time.Duration // after a failure; 250 ms
	LongestPause time.Duration // after many; 30 s

	HTTP   *http.Client // nil: one of its own
	Logger *slog.Logger // nil: the default one
}

// Node is a node that is asked for blocks. It may be used by several goroutines
// at a time.
type Node struct {
	options Options
	record  record
}

// ErrNotFound says that the node has no such block.
var ErrNotFound = errors.New("the node has no such block")

// errCheck says that a block fails the check of [Options].
var errCheck = errors.New("the block is not right")

// ErrOtherChain says that the node's chain is not the one that is followed.
var ErrOtherChain = errors.New("the node is of another chain")

// New makes ready to speak with a node. It does not do so yet.
func New(options Options) (*Node, error) {
	parsed, err := url.Parse(options.URL)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, errors.New("node: found another URL, expected http://HOST… or https://HOST…") // it may hold a key
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
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = options.Parallel
		options.HTTP = &http.Client{
			Transport: transport,
			// Where a key was sent nobody else is to be told of it.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	options.Logger = options.Logger.With("node", parsed.Host)
	return &Node{options: options, record: record{status: Status{Name: parsed.Host}}}, nil
}
