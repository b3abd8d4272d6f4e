package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/pool"
	"ashlar/evm/source/node"
	"ashlar/family"
	"ashlar/jsonrpc"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// following keeps a network at the head of its sources.
type following struct {
	name     string
	follower *ingest.Follower
	runPool  func(context.Context) error // adapts the pool to every new head; nil if the network takes no transactions
	pursuit  *upstream.Pursuit           // follows the nodes' best head, or fetches missing blocks; nil without nodes
	driven   *driven                     // by a consensus client; nil if the nodes say what the head is
	clients  []*node.Client
	tasks    tasks // that must not stop, for the network to follow
}

// tasks are those of a network that must not stop.
type tasks []*retry.Task

// begin adds a task.
func (t *tasks) begin(name, network string) *retry.Task {
	task := retry.New(name, slog.With("network", network))
	*t = append(*t, task)
	return task
}

// stopped returns why one of the tasks is stopped, nil if none is.
func (t tasks) stopped() *retry.Stop {
	for _, task := range t {
		if stopped := task.Stopped(); stopped != nil {
			return stopped
		}
	}
	return nil
}

// follow makes the network ready to follow its nodes, or its consensus client. It does
// so while run runs.
func (n *network) follow(ctx context.Context, s family.Service) error {
	f := &following{name: s.Name, follower: n.follower(ingest.DefaultDepths())}
	f.follower.Task = f.tasks.begin("settle blocks", s.Name)
	task := "follow the best head"
	if n.entries.Engine.Listen != "" {
		task = "fetch missing blocks"
	}
	config := upstream.Config{Task: f.tasks.begin(task, s.Name), Quorum: n.entries.Quorum, Follower: f.follower}
	var err error
	if f.clients, err = n.connect(ctx, s, &config); err != nil {
		return err
	}
	if n.entries.Pool != poolNone && len(n.entries.Source) > 0 {
		f.runPool = n.newFollowedPool(s, &config)
	}
	switch rules := n.executor.Config(); {
	case n.entries.Engine.Listen == "":
		f.pursuit = upstream.New(config)
	case len(config.Nodes) > 0:
		f.drive(rules, s.Version, upstream.NewSupplier(config), config.Task)
	default:
		f.drive(rules, s.Version, nil, config.Task)
	}
	n.following = f
	return nil
}

// connect adds the network's nodes to a configuration. They are contacted when it is used.
func (n *network) connect(ctx context.Context, s family.Service, config *upstream.Config) (clients []*node.Client, err error) {
	config.ChainID = n.archive.Genesis().Config.ChainID.Uint64()
	config.Pace, config.Log = upstream.DefaultPace(), slog.With("network", s.Name)
	first, err := n.archive.Header(ctx, 0)
	if err != nil {
		return nil, err
	}
	config.Genesis = first.Hash
	for _, address := range n.entries.Source {
		client, err := node.New(address)
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		clients, config.Nodes = append(clients, client), append(config.Nodes, client)
	}
	return clients, nil
}

// newPool gives the network a pool. run adapts the pool to every new head.
func (n *network) newPool(name string) (waiting *pool.Pool, run func(context.Context) error) {
	waiting = pool.New(n.executor.Config(), pool.DefaultLimits())
	n.chain.SetPool(waiting)
	pooling := retry.New("adapt the pool to the head", slog.With("network", name))
	return waiting, func(ctx context.Context) error {
		return pooling.Keep(ctx, func(ctx context.Context) error { return n.chain.RunPool(ctx, pooling.Succeeded) })
	}
}

// newFollowedPool is newPool for a pool that also gets the transactions that wait at the nodes
// of a configuration.
func (n *network) newFollowedPool(s family.Service, config *upstream.Config) (run func(context.Context) error) {
	waiting, run := n.newPool(s.Name)
	if n.entries.Pool != poolSent {
		config.Waiting = func(ctx context.Context, tx *types.Transaction) {
			// A transaction that is refused here was accepted by a node with other
			// limits, or is included by now.
			_ = waiting.AddAccepted(ctx, tx)
		}
	}
	return run
}

// run follows until ctx is done. An error of our own, such as a full disk, stops following
// until its cause is gone; meanwhile stored blocks can still be read.
func (f *following) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.follower.Run(ctx) })
	if f.driven != nil {
		group.Go(func() error { return f.driven.run(ctx) })
	} else {
		group.Go(func() error { return f.pursuit.Run(ctx) })
	}
	if f.runPool != nil {
		group.Go(func() error { return f.runPool(ctx) })
	}
	err := group.Wait()
	for _, client := range f.clients {
		client.Close()
	}
	return err
}

// forward sends a transaction to the nodes. If a node refuses it, the client gets the
// node's error.
func (f *following) forward(ctx context.Context, raw []byte) error {
	return send(ctx, f.pursuit, raw)
}

func send(ctx context.Context, to *upstream.Pursuit, raw []byte) error {
	err := to.Send(ctx, raw)
	var refused *node.RefusedError
	if errors.As(err, &refused) {
		return &jsonrpc.Error{Code: refused.Code, Message: refused.Message}
	}
	return err
}

// syncing says how far the network is from the head that it follows. A network that is
// stopped is never at the head.
func (f *following) syncing() (api.Sync, bool) {
	if f.driven != nil {
		if sync, syncing := f.driven.sync(); syncing {
			return api.Sync{Starting: sync.Starting, Current: sync.Current, Highest: sync.Highest}, true
		}
	}
	head := f.follower.Forkchoice().Head.Ref().Number
	sync, far := api.Sync{Starting: head, Current: head, Highest: head}, false
	if f.pursuit != nil {
		now := f.pursuit.Status()
		if way := now.Sync; way != nil {
			return api.Sync{Starting: way.Starting, Current: way.Current, Highest: way.Highest}, true
		}
		sync.Highest = max(head, now.Best)
		far = f.driven == nil && sync.Highest > head+upstream.Behind
	}
	return sync, far || f.tasks.stopped() != nil
}

// status is nil if there are no nodes.
func (f *following) status() *family.SourceStatus {
	if f.pursuit == nil {
		return nil
	}
	now, head, stopped := f.pursuit.Status(), f.follower.Forkchoice().Head.Ref().Number, f.tasks.stopped()
	status := &family.SourceStatus{Problem: now.Problem, Best: now.Best, Reached: now.Reached, Behind: now.Best - min(now.Best, head)}
	if stopped != nil {
		status.Problem = stopped.Err.Error()
	}
	if a := now.Agreement; a != nil {
		status.Agreement = &family.AgreementStatus{Quorum: a.Quorum, Nodes: a.Nodes}
		if !a.Since.IsZero() {
			status.Agreement.Since = a.Since.Unix()
		}
	}
	for _, n := range now.Nodes {
		status.Upstreams = append(status.Upstreams, family.UpstreamStatus{
			Name: n.Name, Head: n.Head.Number, Used: n.Used && stopped == nil, Why: n.Why, Differs: n.Differs,
			Latency: n.Latency.Microseconds(), Failures: n.Counts.Failures, Invalid: n.Counts.Invalid, TooDeep: n.Counts.TooDeep,
		})
	}
	return status
}
