package app

import (
	"context"
	"errors"
	"fmt"

	"ashlar/api/eth"
	"ashlar/archive"
	"ashlar/execute"
	"ashlar/ingest"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/query"
	"ashlar/tip"
)

// network is an EVM network that is open.
type network struct {
	name     string
	store    kv.Store
	archive  *archive.Archive
	tip      *tip.Tip
	executor *execute.Executor
	chain    *query.Chain
	methods  jsonrpc.Methods

	following *following // nil where the network has no source
}

// openNetwork opens a network that is there, with its unsettled blocks, or returns
// errNoBlocks where there is nothing of it yet. Its store must be closed.
func openNetwork(ctx context.Context, data dataDir, name string, options pebble.Options) (_ *network, err error) {
	a, store, err := data.openArchive(ctx, name, options)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("network %s: %w", name, err), store.Close())
		}
	}()
	n := &network{name: name, store: store, archive: a}
	if n.executor, err = execute.New(a.Genesis().Config); err != nil {
		return nil, err
	}
	settled, _ := a.Settled()
	if n.tip, err = tip.Open(ctx, store, archive.Tables(), settled); err != nil {
		return nil, err
	}
	n.chain = query.NewChain(a, n.tip, n.executor)
	n.methods = eth.New(n.chain, eth.Config{ClientVersion: ClientVersion(), Syncing: n.syncing}).Methods()
	return n, nil
}

// syncing is what eth_syncing answers.
func (n *network) syncing() (eth.Sync, bool) {
	if n.following == nil {
		return eth.Sync{}, false
	}
	return n.following.syncing()
}

// follower brings further blocks into the network. It has one at most.
func (n *network) follower(depths ingest.Depths) *ingest.Follower {
	return ingest.NewFollower(n.archive, n.tip, n.executor, depths)
}
