package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/pool"
	"ashlar/evm/source/node"
	"ashlar/family"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// following keeps a network at the head of its sources.
type following struct {
	name     string
	follower *ingest.Follower
	keepPool func(context.Context) error // adapts the pool to every new head; nil if the network takes no transactions
	pursuit  *upstream.Pursuit           // follows the nodes' best head, or fetches missing blocks; nil without nodes
	driven   *driven                     // by a consensus client; nil if the nodes say what the head is
	clients  []*node.Client
	failure  atomic.Pointer[error] // why following has ended
}

// follow makes the network ready to follow its nodes, or its consensus client. It does
// so while run runs.
func (n *network) follow(ctx context.Context, s family.Service) error {
	f := &following{name: s.Name, follower: n.follower(ingest.DefaultDepths())}
	config := upstream.Config{
		Follower: f.follower, ChainID: n.archive.Genesis().Config.ChainID.Uint64(),
		Pace: upstream.DefaultPace(), Log: slog.With("network", s.Name),
	}
	first, err := n.archive.Header(ctx, 0)
	if err != nil {
		return err
	}
	config.Genesis = first.Hash
	for _, address := range n.entries.Source {
		client, err := node.New(address)
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		f.clients, config.Nodes = append(f.clients, client), append(config.Nodes, client)
	}
	if n.entries.Pool != poolNone && len(n.entries.Source) > 0 {
		waiting := pool.New(n.executor.Config(), pool.DefaultLimits())
		n.chain.SetPool(waiting)
		f.keepPool = n.chain.KeepPool
		if n.entries.Pool != poolSent {
			config.Waiting = func(tx *types.Transaction) {
				// A transaction that is refused here was accepted by a node with other
				// limits, or is included by now.
				_ = waiting.Add(context.Background(), tx)
			}
		}
	}
	switch rules := n.executor.Config(); {
	case n.entries.Engine.Listen == "":
		f.pursuit = upstream.New(config)
	case len(config.Nodes) > 0:
		f.drive(rules, s.Version, upstream.NewSupplier(config))
	default:
		f.drive(rules, s.Version, nil)
	}
	n.following = f
	return nil
}

// run follows until ctx is done. A store that fails ends following, but not the
// service: stored blocks can still be read.
func (f *following) run(ctx context.Context) error {
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return f.follower.Run(inner) })
	if f.driven != nil {
		group.Go(func() error { return f.driven.run(inner) })
	} else {
		group.Go(func() error { return f.pursuit.Run(inner) })
	}
	if f.keepPool != nil {
		group.Go(func() error { return f.keepPool(inner) })
	}
	err := group.Wait()
	for _, client := range f.clients {
		client.Close()
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("network %s no longer follows its source, until the process is started again: %w", f.name, err)
	f.failure.Store(&err)
	slog.Error("following has ended; reads go on", "network", f.name, "because", err)
	<-ctx.Done()
	return err
}

// forward sends a transaction to the nodes. If a node refuses it, the client gets the
// node's error.
func (f *following) forward(ctx context.Context, raw []byte) error {
	err := f.pursuit.Send(ctx, raw)
	var refused *node.RefusedError
	if errors.As(err, &refused) {
		return &jsonrpc.Error{Code: refused.Code, Message: refused.Message}
	}
	return err
}

// syncing says how far the network is from the head that it follows.
func (f *following) syncing() (api.Sync, bool) {
	if f.driven != nil {
		sync, syncing := f.driven.sync()
		return api.Sync(sync), syncing
	}
	sync := f.pursuit.Status().Sync
	if sync == nil {
		return api.Sync{}, false
	}
	return api.Sync(*sync), true
}

// status is nil if there are no nodes.
func (f *following) status() *family.SourceStatus {
	if f.pursuit == nil {
		return nil
	}
	now := f.pursuit.Status()
	status := &family.SourceStatus{Problem: now.Problem}
	if failure := f.failure.Load(); failure != nil {
		status.Problem = (*failure).Error()
	}
	if now.Sync != nil {
		status.Behind = now.Sync.Highest - now.Sync.Current
	}
	for _, n := range now.Nodes {
		status.Upstreams = append(status.Upstreams, family.UpstreamStatus{
			Name: n.Name, Head: n.Head.Number, Used: n.Used, Why: n.Why,
			Failures: n.Counts.Failures, Invalid: n.Counts.Invalid, TooDeep: n.Counts.TooDeep,
		})
	}
	return status
}
