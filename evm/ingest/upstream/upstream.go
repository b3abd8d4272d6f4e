// Package upstream keeps a chain at the best head of some nodes.
//
// The best head is the highest one. Nodes are not trusted: a block becomes visible only
// after it was executed and fully checked. A node that sends an invalid block, or an answer
// that no honest node gives, is logged, counted and suspended for a while; the other nodes
// are used meanwhile. A node that fails or is too slow is retried with growing intervals,
// whatever head it claims.
//
// Two things cannot be checked and come from the nodes: which of several valid branches is
// the chain, and which blocks are safe and finalized. With [Config.Quorum], several nodes
// must agree on them. A head on our own branch belongs to a node that lags, and changes
// nothing.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/source/node"
	"ashlar/history/tip"
	"ashlar/retry"

	"github.com/cenkalti/backoff/v5"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// Node is a node to fetch blocks from, such as a [node.Client], which documents the
// methods. All methods are safe for concurrent use. Except the subscriptions, they return
// within a bounded time.
type Node interface {
	// Name identifies the node in logs and contains no secrets.
	Name() string
	Identity(ctx context.Context) (chainID uint64, genesis common.Hash, err error)
	Forkchoice(ctx context.Context) (node.Forkchoice, error)
	// HashAt returns the hash of the block with a number on the node's chain.
	HashAt(ctx context.Context, number uint64) (common.Hash, error)
	// Block returns the block with a hash.
	Block(ctx context.Context, hash common.Hash) (*types.Block, error)
	// Blocks returns 1 to count blocks of the node's chain.
	Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error)
	// Headers returns count headers of the node's chain.
	Headers(ctx context.Context, from uint64, count int) ([]*types.Header, error)
	// SubscribeHeads calls notify for new heads until it fails; the error is
	// node.ErrNoSubscriptions if the node does not support it.
	SubscribeHeads(ctx context.Context, notify func(head chain.Ref)) error
	// Send sends a transaction. A *node.RefusedError means that the node rejected it.
	Send(ctx context.Context, raw []byte) error
	// Pool returns the transactions in the node's pool, or node.ErrNoPool.
	Pool(ctx context.Context) ([]*types.Transaction, error)
	// SubscribePool calls notify for pooled and new transactions until it fails, as
	// SubscribeHeads does.
	SubscribePool(ctx context.Context, notify func(*types.Transaction)) error
}

// Pace holds intervals and time limits.
type Pace struct {
	Poll            time.Duration // interval of requests for the head if the node does not announce it
	Recheck         time.Duration // the same if it does
	Pool            time.Duration // interval of requests for the pool if the node does not announce transactions
	Step            time.Duration // time limit for a range of blocks or headers, or for finding a common ancestor
	Retry, RetryMax time.Duration // first and maximum average wait after a failure
	Aside, AsideMax time.Duration // first and maximum average wait after an invalid answer
}

// DefaultPace is for chains with a block every few seconds, up to mainnet's twelve.
func DefaultPace() Pace {
	return Pace{
		Poll: 2 * time.Second, Recheck: 15 * time.Second, Pool: 5 * time.Second, Step: 30 * time.Second,
		Retry: time.Second, RetryMax: time.Minute,
		Aside: time.Minute, AsideMax: 15 * time.Minute,
	}
}

// within runs one step of requests to a node, and blames the node if it takes longer than
// Pace.Step. Time limits of single calls would not suffice: a node could answer each of
// them with the minimum, just in time.
func (p *Pursuit) within(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Pace.Step, errSlow)
	defer cancel()
	err := ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		return answered(fmt.Errorf("%w: %s are over: %w", errSlow, p.config.Pace.Step, err))
	}
	return err
}

var errSlow = errors.New("timeout")

// newBackoff returns the waits after consecutive failures: each twice the previous one,
// from first to most, randomized by up to a half, so that not all nodes are retried at the
// same time.
func newBackoff(first, most time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: first, MaxInterval: most, Multiplier: 2, RandomizationFactor: backoff.DefaultRandomizationFactor,
	}
}

// Config configures a pursuit.
type Config struct {
	Nodes    []Node
	Follower *ingest.Follower
	// ChainID and Genesis are required of each node.
	ChainID uint64
	Genesis common.Hash
	// Quorum is the number of nodes that must agree on a block before it is followed, and
	// on a final block before it settles. 0 and 1: the best node is followed.
	Quorum int
	// Waiting, if not nil, is called for transactions in the pools of nodes, concurrently,
	// and possibly several times for the same one. Following stops only when it has returned,
	// so it must not outlast its context.
	Waiting func(context.Context, *types.Transaction)
	// Task, if not nil, keeps following going after errors that no node is to blame for. It
	// also learns of blocks that settle on a long way to a head. A Supplier's caller runs it.
	Task *retry.Task
	Pace Pace
	Log  *slog.Logger
}

// Pursuit follows the best head of its nodes.
type Pursuit struct {
	config   Config
	follower *ingest.Follower
	nodes    []*candidate
	changed  chan struct{} // signals that there may be something to do
	arrived  chan struct{} // closed, through first, when the chain first reaches a head
	first    sync.Once

	mu      sync.Mutex // guards the fields below and the mutable fields of candidates
	under   *pursued   // in progress; nil if none
	problem string     // why the best head is not followed; else empty

	agreement  Agreement // with a quorum
	agreedHead uint64    // the last head on which a quorum agreed
}

// pursued is a head that is being approached.
type pursued struct {
	starting uint64
	head     chain.Ref
}

// New returns a pursuit. It does nothing until Run is called.
func New(config Config) *Pursuit {
	p := &Pursuit{config: config, follower: config.Follower, changed: make(chan struct{}, 1), arrived: make(chan struct{})}
	if config.Quorum > 1 {
		p.agreement = Agreement{Quorum: config.Quorum, Since: time.Now()}
	}
	pace := config.Pace
	known := make(map[string]int)
	for _, n := range config.Nodes {
		name := n.Name()
		if known[name]++; known[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, known[name])
		}
		p.nodes = append(p.nodes, &candidate{
			node: n, name: name, log: config.Log.With("upstream", name),
			unreached: newBackoff(pace.Retry, pace.RetryMax), failed: newBackoff(pace.Retry, pace.RetryMax),
			invalid: newBackoff(pace.Aside, pace.AsideMax),
		})
	}
	return p
}

// Run follows the nodes until ctx is done, or until the chain itself cannot import blocks
// any more. Errors of nodes do not end it.
func (p *Pursuit) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range p.nodes {
		group.Go(func() error { p.watch(ctx, c); return nil })
	}
	group.Go(func() error { return p.config.Task.Keep(ctx, p.pursue) })
	return group.Wait()
}

// wake makes the pursuing goroutine check again.
func (p *Pursuit) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// fault classifies an error.
type fault int

const (
	notTheirs fault = iota // the node is not to blame
	failed                 // no answer, or a change of branch between answers
	invalid                // an answer that no honest node gives
	tooDeep                // a branch that forks off below our final block
	ahead                  // an answer that cannot be checked yet, and may be right
)

// ErrTooDeep means that a chain forks off from ours below our final block.
var ErrTooDeep = errors.New("its chain forks off below our last final block")

var errMoved = errors.New("its answers belong to different branches")

// answerError is a node's error, as opposed to our own.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

// answered marks an error as a node's.
func answered(err error) error {
	if err == nil {
		return nil
	}
	return &answerError{err}
}

// faultOf classifies an error.
func faultOf(err error) fault {
	var refused *execute.CheckError
	var wrong *node.InvalidError
	var answer *answerError
	switch {
	case errors.As(err, &refused), errors.As(err, &wrong):
		return invalid
	case errors.Is(err, ErrTooDeep):
		return tooDeep
	case errors.Is(err, execute.ErrFuture), errors.Is(err, execute.ErrUnknownFork):
		return ahead
	case errors.As(err, &answer), errors.Is(err, errMoved),
		// Blocks may be dropped meanwhile, when another branch settles.
		errors.Is(err, tip.ErrUnknownParent), errors.Is(err, tip.ErrUnknownBlock),
		errors.Is(err, ingest.ErrOtherChain), errors.Is(err, ingest.ErrGap):
		return failed
	}
	return notTheirs
}
