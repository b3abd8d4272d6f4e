// Package upstream keeps a chain at the best head that some nodes tell of.
//
// The best head is the highest one. What the nodes say is hearsay: a block is seen
// by nobody before it has been executed and all of it checked, and a node that
// gives one which breaks a rule, or an answer that no honest node could give, is
// named in the log, counted, and put aside for a while; the others are used. A
// node that fails is asked again after a while that grows each time; so is one that
// takes too long, whatever head it tells of.
//
// What nodes are relied on for is which of several right branches is the chain,
// and what of it is safe and finalized: that is not in the blocks. A head that lies
// on the branch up to ours is that of a node that lags, and moves nothing.
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

// Node is a node that blocks are asked of, such as a [node.Client], where more is
// said of each method. They may be called from many goroutines at once, and return
// within a bounded time, those that watch aside.
type Node interface {
	// Name is for people, and tells nothing that is secret.
	Name() string
	Identity(ctx context.Context) (chainID uint64, genesis common.Hash, err error)
	Standing(ctx context.Context) (node.Standing, error)
	// HashAt is the hash of the block with a number, on the node's chain.
	HashAt(ctx context.Context, number uint64) (common.Hash, error)
	// Block is the block with a hash.
	Block(ctx context.Context, hash common.Hash) (*types.Block, error)
	// Blocks are up to count blocks of the node's chain, one at least.
	Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error)
	// Headers are count headers of the node's chain.
	Headers(ctx context.Context, from uint64, count int) ([]*types.Header, error)
	// SubscribeHeads tells of new heads until it fails, with node.ErrNoSubscriptions where
	// the node does not offer that.
	SubscribeHeads(ctx context.Context, notify func(head chain.Ref)) error
	// Send passes a transaction on. A *node.RefusedError says that the node does not take it.
	Send(ctx context.Context, raw []byte) error
	// Pool is what waits in the node's pool, or node.ErrNoPool.
	Pool(ctx context.Context) ([]*types.Transaction, error)
	// SubscribePool tells of what waits and of what comes in until it fails, as SubscribeHeads does.
	SubscribePool(ctx context.Context, notify func(*types.Transaction)) error
}

// Pace is how long things wait.
type Pace struct {
	Poll             time.Duration // between questions for the head, where the node does not announce it
	Recheck          time.Duration // and where it does
	Pool             time.Duration // between questions for what waits, where the node does not announce it
	Step             time.Duration // for which a node may keep others waiting: for a range of blocks or headers, or for where its branch leaves ours
	Retry, RetryMost time.Duration // until a node that failed is asked again: at first, and at most, on average
	Aside, AsideMost time.Duration // for which a node that was wrong is not asked, likewise
}

// DefaultPace suits chains with a block every few seconds, up to mainnet's twelve.
func DefaultPace() Pace {
	return Pace{
		Poll: 2 * time.Second, Recheck: 15 * time.Second, Pool: 5 * time.Second, Step: 30 * time.Second,
		Retry: time.Second, RetryMost: time.Minute,
		Aside: time.Minute, AsideMost: 15 * time.Minute,
	}
}

// within asks a node for what one step takes, and blames it where that is longer than
// a step may take. The limits of single calls do not tell that: a node may answer
// each of them with the least, just in time.
func (p *Pursuit) within(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Pace.Step, errSlow)
	defer cancel()
	err := ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		return answered(fmt.Errorf("%w: %s are over: %w", errSlow, p.config.Pace.Step, err))
	}
	return err
}

var errSlow = errors.New("it takes too long")

// newBackoff returns waits after failures in a row: each twice as long as the one
// before, from first to most, give or take a random half, so that not all nodes are
// asked again at once.
func newBackoff(first, most time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: first, MaxInterval: most, Multiplier: 2, RandomizationFactor: backoff.DefaultRandomizationFactor,
	}
}

// Config is what a pursuit is made of.
type Config struct {
	Nodes    []Node
	Follower *ingest.Follower
	// ChainID and Genesis are those that each node must have.
	ChainID uint64
	Genesis common.Hash
	// Waiting, if not nil, is told of transactions that wait in the pools of nodes,
	// more than once of some, and from many goroutines at once.
	Waiting func(*types.Transaction)
	// Task, if not nil, keeps following going after errors that no node is to blame for.
	Task *retry.Task
	Pace Pace
	Log  *slog.Logger
}

// Pursuit follows the best head of its nodes.
type Pursuit struct {
	config   Config
	follower *ingest.Follower
	nodes    []*candidate
	changed  chan struct{} // receives when there may be something to do
	arrived  chan struct{} // closed, by first, when the chain is at a head for the first time
	first    sync.Once

	mu      sync.Mutex // guards what follows, and what changes of the candidates
	under   *pursued   // what is under way; nil when nothing is
	problem string     // why the best head is not followed
}

// pursued is a head on the way to which the chain is.
type pursued struct {
	starting uint64
	head     chain.Ref
}

// New makes a pursuit. It does nothing until it is run.
func New(config Config) *Pursuit {
	p := &Pursuit{config: config, follower: config.Follower, changed: make(chan struct{}, 1), arrived: make(chan struct{})}
	pace := config.Pace
	known := make(map[string]int)
	for _, n := range config.Nodes {
		name := n.Name()
		if known[name]++; known[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, known[name])
		}
		p.nodes = append(p.nodes, &candidate{
			node: n, name: name, log: config.Log.With("upstream", name),
			unreached: newBackoff(pace.Retry, pace.RetryMost), failed: newBackoff(pace.Retry, pace.RetryMost),
			invalid: newBackoff(pace.Aside, pace.AsideMost),
		})
	}
	return p
}

// Run follows until ctx is done, or until the chain itself cannot take in blocks
// any more. Whatever the nodes do is no error.
func (p *Pursuit) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range p.nodes {
		group.Go(func() error { p.watch(ctx, c); return nil })
	}
	group.Go(func() error { return p.config.Task.Keep(ctx, p.pursue) })
	return group.Wait()
}

// wake has the pursuing goroutine look again.
func (p *Pursuit) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// fault is what a node did wrong.
type fault int

const (
	notTheirs fault = iota // the node is not to blame
	failed                 // it did not answer, or changed its branch while it was asked
	invalid                // it gave what no honest node gives
	tooDeep                // it is on a branch that leaves ours below what is final
	ahead                  // it gave what cannot be judged here yet, and may well be right
)

// ErrTooDeep says that a chain leaves ours below what is final.
var ErrTooDeep = errors.New("its chain is another one below our last final block")

var errMoved = errors.New("its answers are of more than one branch")

// answerError is an error of a node rather than of ours.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

// answered marks the error of an answer.
func answered(err error) error {
	if err == nil {
		return nil
	}
	return &answerError{err}
}

// faultOf says who is to blame for an error.
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
		// Blocks may be let go meanwhile, as another branch settles.
		errors.Is(err, tip.ErrUnknownParent), errors.Is(err, tip.ErrUnknownBlock),
		errors.Is(err, ingest.ErrOtherChain), errors.Is(err, ingest.ErrGap):
		return failed
	}
	return notTheirs
}
