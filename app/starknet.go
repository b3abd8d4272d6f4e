package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	stores "ashlar/app/store"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/api"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/ingest"
	"ashlar/starknet/query"
	"ashlar/starknet/source/node"
)

// starknetNetwork is a network of the family of Starknet. It implements [family].
type starknetNetwork struct {
	archive  *archive.Archive
	follower *ingest.Follower
	chain    *query.Chain
	first    uint64 // the block with which it begins where it holds none

	name    string
	source  *node.Node            // that it follows; nil for none
	stopped atomic.Pointer[error] // why it is not followed for now; nil while it is

	hashes    *blockhash.Checker // of its blocks
	unchecked atomic.Uint64      // blocks whose hash could not be recomputed
}

// How long the network waits, at first and at last, where its node is of no use
// until somebody does something about it.
const (
	firstRest   = time.Minute
	longestRest = 15 * time.Minute
)

// chainID is the ID of the chain of a Starknet network, where nobody says what it
// is: that of the public network of the same name, else the name in upper case.
func chainID(network string) string {
	switch network {
	case "mainnet":
		return "SN_MAIN"
	case "sepolia", "goerli", "goerli2":
		return "SN_" + strings.ToUpper(network)
	}
	id := strings.ToUpper(strings.ReplaceAll(network, "-", "_"))
	return id[:min(len(id), 31)]
}

// beginStarknet makes a Starknet network that is not there yet, empty: what it follows
// brings the blocks.
func beginStarknet(ctx context.Context, data dataDir, name string, config NetworkConfig) error {
	id := config.Chain
	if id == "" {
		id = chainID(name)
	}
	_, store, err := data.createStarknet(ctx, name, kv.Options{}, id)
	if err != nil {
		return err
	}
	return store.Close()
}

// createStarknet opens the settled history of a Starknet network, or makes it. The ID
// is that of its chain; it may be empty for a network that is there.
func (d dataDir) createStarknet(ctx context.Context, name string, options kv.Options, id string) (*archive.Archive, kv.Store, error) {
	if err := gateway.CheckNetworkName(name); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(d.networks(), 0o755); err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	options.Logger = slog.Default()
	options.Accept = func(r kv.Reader) error {
		if err := checkFamily(ctx, r, familyStarknet); err != nil {
			return err
		}
		return archive.Accept(ctx, r, id)
	}
	store, err := stores.Open(d.network(name), options)
	if err != nil {
		return nil, nil, fmt.Errorf("network %s: %w", name, err)
	}
	var a *archive.Archive
	if id == "" {
		a, err = archive.Open(ctx, store)
	} else {
		a, err = archive.Create(ctx, store, id)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("network %s: %w", name, err), store.Close())
	}
	return a, store, nil
}

// openStarknet opens a Starknet network that is there. Without blocks it is of use only
// to be filled from a node.
func openStarknet(ctx context.Context, store kv.Store, config NetworkConfig) (*starknetNetwork, error) {
	a, err := archive.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	if a.Span() == nil && len(config.Source) == 0 {
		return nil, errNoBlocks
	}
	if config.Chain != "" && config.Chain != a.ChainID() {
		return nil, fmt.Errorf("its chain ID is %s, the configuration says %s", a.ChainID(), config.Chain)
	}
	follower, err := ingest.OpenFollower(ctx, store, a, ingest.DefaultDepth)
	if err != nil {
		return nil, err
	}
	return &starknetNetwork{archive: a, follower: follower, chain: query.NewChain(a, follower.Tip), first: config.First}, nil
}

// prepare implements [family].
func (n *starknetNetwork) prepare(Config) (*jsonrpc.Methods, error) {
	return api.New(n.chain).Methods()
}

// describe implements [family].
func (n *starknetNetwork) describe(ctx context.Context) (NetworkStatus, error) {
	status := NetworkStatus{Family: familyStarknet, Chain: n.archive.ChainID()}
	if view := n.chain.View(); view != nil {
		span := view.Span()
		header, err := view.Header(ctx, span.Last.Number)
		if err != nil {
			return status, err
		}
		status.First, status.Head, status.HeadHash, status.HeadTime = span.First, header.Number, header.Hash.String(), header.Timestamp
		status.Settled = n.archive.Span().Last.Number
	}
	if n.source != nil {
		status.Source = n.sourceStatus(status.Head)
	}
	return status, nil
}

// sourceStatus is how a network whose newest block has that number stands to its node.
func (n *starknetNetwork) sourceStatus(head uint64) *SourceStatus {
	now := n.source.Status()
	status := &SourceStatus{Problem: now.Problem, Behind: now.Head - min(now.Head, head)}
	upstream := UpstreamStatus{Name: now.Name, Head: now.Head, Failures: now.Failures, Invalid: now.Invalid}
	if stopped := n.stopped.Load(); stopped != nil {
		status.Problem = (*stopped).Error()
		if errors.Is(*stopped, ingest.ErrTooDeep) {
			upstream.TooDeep = 1
		}
	}
	upstream.Used, upstream.Why = status.Problem == "", status.Problem
	status.Upstreams = []UpstreamStatus{upstream}
	return status
}

// follow implements [family].
func (n *starknetNetwork) follow(name string, config NetworkConfig) (err error) {
	// The configuration need not have said of which family it is.
	if config.Engine != (EngineConfig{}) {
		return fmt.Errorf("network %s: engine is for EVM networks", name)
	}
	if err := config.Source.check(familyStarknet); err != nil {
		return fmt.Errorf("network %s: source: %w", name, err)
	}
	n.name = name
	id := starknet.FeltOfText(n.archive.ChainID())
	n.hashes = blockhash.New(id)
	n.source, err = node.New(node.Options{
		URL: config.Source[0], ChainID: id, Logger: slog.With("network", name),
		Check: n.checkHash,
	})
	return err
}

// checkHash checks the hash of a block that the node has told. It says when it is for
// the first time that it cannot.
func (n *starknetNetwork) checkHash(block *starknet.Block) error {
	verdict, err := n.hashes.Check(block)
	if err == nil && verdict != blockhash.Confirmed && n.unchecked.Add(1) == 1 {
		slog.Warn("blocks are taken as the node tells them: their hashes cannot be recomputed", "network", n.name, "first", block.Number, "why", verdict)
	}
	return err
}

// run implements [family]. Where its node is of no use, what is held is served all
// the same, and the node is tried again after a rest.
func (n *starknetNetwork) run(ctx context.Context) error {
	if n.source == nil {
		return nil
	}
	for rest := firstRest; ; rest = min(2*rest, longestRest) {
		n.stopped.Store(nil)
		err := n.source.Follow(ctx, n.first, n.follower)
		if ctx.Err() != nil {
			return nil
		}
		n.stopped.Store(&err)
		slog.Error("the node is not followed for now; reads go on", "network", n.name, "again_in", rest, "because", err)
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return nil
		}
	}
}
