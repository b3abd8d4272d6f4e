package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// History is a kind of history that a node may lack.
type History uint8

const (
	NoHistory History = iota // the call is about no block in particular
	Blocks                   // blocks, receipts and logs
	States                   // accounts, slots, calls and traces
)

// Call is a question to the nodes.
type Call struct {
	Method string
	Params json.RawMessage // a JSON array
	// Numbered are the params for nodes that take no block hash where Params have one; nil:
	// the same for all nodes.
	Numbered json.RawMessage
	// Needs is the block that the node's head must have reached.
	Needs uint64
	// AsOf is the head of the caller's chain if the answer or Check depends on it. Calls as of
	// different heads are not shared.
	AsOf common.Hash
	// History and About are the kind of history and the block that the call is about.
	History History
	About   uint64
	// Check, if not nil, returns why an answer cannot be used; another node is asked then.
	// An error that wraps [ErrLie] sets the node aside. It may be called from several
	// goroutines, also with the answer to an identical call of another caller. A check that keeps
	// a processor busy is made after Ask, see [Pool.Reject].
	Check func(result json.RawMessage) error
	// Once says that the call changes something: it is not shared, and not repeated unless the node has
	// refused it or could not be reached.
	Once bool
	// Stored says that the call reads what nodes store, with valid params: no error is an answer
	// to it, so another node is asked.
	Stored bool

	asked    *askedNodes // nil: nobody wants to know
	rejected []attempt
}

// Answer is a node's answer. Result is valid JSON that may be shared: it must not be changed.
type Answer struct {
	Result json.RawMessage
	Node   string // its name
	Err    error  // of [Pool.AskAll] and [Pool.AskEach]
}

// Config configures a pool. Zero values mean the defaults.
type Config struct {
	Nodes []Node
	// ChainID is that of the chain; 0: that of the first node of the list that answers.
	ChainID uint64
	Poll    time.Duration // between questions about a node's head; default 1 s
	Time    time.Duration // of a request to a node; default 20 s
	Wait    time.Duration // until a node can be asked, unless the call's context ends before; default 10 s
	Bytes   int64         // of an answer; default 64 MiB
	Batch   int           // calls in one request; default 100
	Log     *slog.Logger
}

func (c *Config) setDefaults() {
	c.Poll, c.Time, c.Wait = cmp.Or(c.Poll, time.Second), cmp.Or(c.Time, 20*time.Second), cmp.Or(c.Wait, 10*time.Second)
	c.Bytes, c.Batch, c.Log = cmp.Or(c.Bytes, 64<<20), cmp.Or(c.Batch, 100), cmp.Or(c.Log, slog.Default())
}

// Pool asks several nodes of one chain. It is safe for concurrent use.
type Pool struct {
	config Config
	nodes  []*node
	open   context.Context // until Run has ended
	close  context.CancelFunc
	calls  sync.WaitGroup // requests under way

	mu      sync.Mutex
	chainID uint64             // guarded by mu; 0: not known yet
	changed chan struct{}      // guarded by mu: closed and replaced when a node has changed
	flights map[string]*flight // guarded by mu: calls under way
	started time.Time          // guarded by mu: Run
}

// New returns a pool. It contacts no node before Run.
func New(config Config) (*Pool, error) {
	config.setDefaults()
	if len(config.Nodes) == 0 {
		return nil, errors.New("no upstream nodes (want at least one URL)")
	}
	named, err := Nodes(config.Nodes).Names()
	if err != nil {
		return nil, err
	}
	p := &Pool{config: config, chainID: config.ChainID, changed: make(chan struct{}), flights: make(map[string]*flight)}
	p.open, p.close = context.WithCancel(context.Background())
	for i, one := range config.Nodes {
		n, err := newNode(one, named[i], config.Bytes, config.Log)
		if err != nil {
			return nil, fmt.Errorf("number %d of %d: %w", i+1, len(config.Nodes), err)
		}
		n.brief = config.Time / hurried
		p.nodes = append(p.nodes, n)
	}
	return p, nil
}

// Run watches the nodes until ctx is done. Calls before it wait, and calls after it fail.
func (p *Pool) Run(ctx context.Context) error {
	p.mu.Lock()
	p.started = time.Now()
	p.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range p.nodes {
		group.Go(func() error { p.watch(ctx, n); return nil })
	}
	err := group.Wait()
	p.mu.Lock()
	p.close()
	p.mu.Unlock()
	p.calls.Wait()
	for _, n := range p.nodes {
		n.to.http.CloseIdleConnections()
	}
	return err
}

// ChainID returns the chain's ID; 0: no node has answered yet.
func (p *Pool) ChainID() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chainID
}

// Changed returns a channel that is closed when a node has changed, such as its head.
func (p *Pool) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// notify wakes those who wait for a change.
func (p *Pool) notify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Status returns the status of all nodes, in the order of the configuration.
func (p *Pool) Status() []Status {
	chainID, now := p.ChainID(), time.Now()
	all := make([]Status, len(p.nodes))
	for i, n := range p.nodes {
		all[i] = n.status(chainID, now)
	}
	return all
}

// Reject records that an answer to a call has failed a check that its caller made after Ask, with an error as of [Call.Check]. When
// the call is made again, other nodes are asked. If there is none, the error of Ask is that of the checks.
func (p *Pool) Reject(c *Call, a Answer, why error) {
	i := slices.IndexFunc(p.nodes, func(n *node) bool { return n.name == a.Node })
	n := p.nodes[i]
	c.rejected = append(c.rejected, attempt{node: n, err: why})
	if errors.Is(why, ErrLie) {
		n.setAside(c.Method, why)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail(n.record(c.Method), time.Now(), why, false, false)
}

// SetAside sets a node aside because of a lie that was found in several answers together.
func (p *Pool) SetAside(name string, why error) {
	for _, n := range p.nodes {
		if n.name == name {
			n.setAside("", why)
		}
	}
}
