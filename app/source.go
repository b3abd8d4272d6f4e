package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"sync/atomic"

	"ashlar/evm/api"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/pool"
	"ashlar/evm/source/node"
	"ashlar/jsonrpc"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// Sources are the URLs of the nodes that a network follows, written as one or as a list.
type Sources []string

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (s *Sources) UnmarshalYAML(decode func(any) error) error {
	var one string
	if decode(&one) == nil {
		*s = Sources{one}
		return nil
	}
	var list []string
	if err := decode(&list); err != nil {
		return errors.New("expected the URL of a node, or a list of them")
	}
	*s = list
	return nil
}

// check says what is wrong with the URLs, of a network of a family. It names them by
// their place, since they may hold keys.
func (s Sources) check(family string) error {
	if family == familyStarknet && len(s) > 1 {
		return fmt.Errorf("%d nodes: expected one, a Starknet network follows no more", len(s))
	}
	for i, address := range s {
		u, err := node.CheckURL(address)
		if err == nil && family == familyStarknet && u.Scheme != "http" && u.Scheme != "https" {
			err = fmt.Errorf("the URL of a Starknet network's node has the scheme %q: expected http or https", u.Scheme)
		}
		if err == nil {
			err = checkPort(u)
		}
		if err != nil {
			return fmt.Errorf("number %d of %d: %w", i+1, len(s), err)
		}
	}
	return nil
}

// checkPort says what is wrong with the port of a node's URL, which may have none.
func checkPort(u *url.URL) error {
	if u.Port() == "" {
		return nil
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return fmt.Errorf("the URL of a node has the port %s: expected one from 1 to 65535", u.Port())
	}
	return nil
}

// Which transactions wait on a network that follows nodes.
const (
	poolAll  = "all"  // those that are sent here and those that wait at the nodes
	poolSent = "sent" // those that are sent here
	poolNone = "none" // none: it takes no transactions
)

// following keeps a network at the head of its sources.
type following struct {
	name     string
	follower *ingest.Follower
	keepPool func(context.Context) error // told of every new head; nil where it takes no transactions
	pursuit  *upstream.Pursuit           // of the nodes' best head, or of blocks that are missing; nil without nodes
	driven   *driven                     // by a consensus client; nil where the head is that of the nodes
	clients  []*node.Client
	failure  atomic.Pointer[error] // why it has ended
}

// follow implements [family].
func (n *evmNetwork) follow(name string, config NetworkConfig) error {
	f := &following{name: name, follower: n.follower(ingest.DefaultDepths())}
	followed := upstream.Config{
		Follower: f.follower, ChainID: n.archive.Genesis().Config.ChainID.Uint64(),
		Pace: upstream.DefaultPace(), Log: slog.With("network", name),
	}
	first, err := n.archive.Header(context.Background(), 0)
	if err != nil {
		return fmt.Errorf("network %s: %w", name, err)
	}
	followed.Genesis = first.Hash
	for _, address := range config.Source {
		client, err := node.New(address)
		if err != nil {
			return fmt.Errorf("network %s: source: %w", name, err)
		}
		f.clients, followed.Nodes = append(f.clients, client), append(followed.Nodes, client)
	}
	if config.Pool != poolNone && len(config.Source) > 0 {
		waiting := pool.New(n.executor.Config(), pool.DefaultLimits())
		n.chain.SetPool(waiting)
		f.keepPool = n.chain.KeepPool
		if config.Pool != poolSent {
			followed.Waiting = func(tx *types.Transaction) {
				// What is refused here was taken by a node with other limits, or is included by now.
				_ = waiting.Add(context.Background(), tx)
			}
		}
	}
	switch {
	case config.Engine.Listen == "":
		f.pursuit = upstream.New(followed)
	case len(followed.Nodes) > 0:
		f.drive(n.executor.Config(), upstream.NewSupplier(followed))
	default:
		f.drive(n.executor.Config(), nil)
	}
	n.following = f
	return nil
}

// run follows until ctx is done. A store that fails ends it, but not the service:
// what is there can still be read.
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

// forward passes a transaction on. What a node says of one that it refuses is told
// to whoever has sent it.
func (f *following) forward(ctx context.Context, raw []byte) error {
	err := f.pursuit.Send(ctx, raw)
	var refused *node.RefusedError
	if errors.As(err, &refused) {
		return &jsonrpc.Error{Code: refused.Code, Message: refused.Message}
	}
	return err
}

// syncing says how far the network is on its way.
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

// SourceStatus is how a network stands to the nodes that it follows.
type SourceStatus struct {
	Problem   string           `json:"problem,omitempty"` // why the best head is not followed
	Behind    uint64           `json:"behind"`            // blocks to catch up with
	Upstreams []UpstreamStatus `json:"upstreams"`
}

// UpstreamStatus is what is known of one node. What it did is counted since the start.
type UpstreamStatus struct {
	Name     string `json:"name"`
	Head     uint64 `json:"head"`
	Used     bool   `json:"used"`
	Why      string `json:"why,omitempty"` // it is not used
	Failures uint64 `json:"failures"`      // it did not answer
	Invalid  uint64 `json:"invalid"`       // it gave what no honest node gives
	TooDeep  uint64 `json:"tooDeep"`       // it was on a branch that leaves ours below what is final
}

// status is nil where there are no nodes.
func (f *following) status() *SourceStatus {
	if f.pursuit == nil {
		return nil
	}
	now := f.pursuit.Status()
	status := &SourceStatus{Problem: now.Problem}
	if failure := f.failure.Load(); failure != nil {
		status.Problem = (*failure).Error()
	}
	if now.Sync != nil {
		status.Behind = now.Sync.Highest - now.Sync.Current
	}
	for _, n := range now.Nodes {
		status.Upstreams = append(status.Upstreams, UpstreamStatus{
			Name: n.Name, Head: n.Head.Number, Used: n.Used, Why: n.Why,
			Failures: n.Counts.Failures, Invalid: n.Counts.Invalid, TooDeep: n.Counts.TooDeep,
		})
	}
	return status
}

// beginNetwork makes a network that is not there yet, with its genesis alone: what
// it follows brings the rest. One that is there must have that genesis.
func beginNetwork(ctx context.Context, data dataDir, name, genesisName string) error {
	first, err := genesis.Load(genesisName)
	if err != nil {
		return fmt.Errorf("network %s: %w", name, err)
	}
	a, store, err := data.createNetwork(ctx, name, kv.Options{}, first)
	if err != nil {
		return err
	}
	if _, there := a.Settled(); !there {
		_, err = newImport(ctx, a, store, first)
		if err != nil {
			return err // and the store is closed
		}
	}
	return store.Close()
}
