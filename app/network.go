package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	stores "ashlar/app/store"
	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/query"
	"ashlar/gateway"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/openrpc"
	"ashlar/kv"
	starknetarchive "ashlar/starknet/archive"

	"golang.org/x/sync/errgroup"
)

// The families of chain, as the configuration and `ashlar status` name them.
const (
	familyEVM      = "evm"
	familyStarknet = "starknet"
)

// checkFamily refuses the store of a network of another family than what is to be
// brought into it. Other formats are told by who reads them.
func checkFamily(ctx context.Context, store kv.Reader, wanted string) error {
	format, err := rows.Format(ctx, store)
	if err != nil {
		return nil // nothing was written yet, or its reader will say the same
	}
	for _, family := range []string{familyEVM, familyStarknet} {
		if family != wanted && strings.HasPrefix(format, "ashlar-"+family+"-") {
			return fmt.Errorf("it is of the family %s, blocks of the family %s cannot be brought into it; see --family", family, wanted)
		}
	}
	return nil
}

// network is a network that is open. Its store must be closed.
type network struct {
	name    string
	store   kv.Store
	methods *jsonrpc.Methods // what it answers
	openRPC *openrpc.Document
	family
}

// family is what networks of different families do in their own ways.
type family interface {
	// prepare makes what answers questions, by a configuration, and returns its methods.
	prepare(c Config) (*jsonrpc.Methods, error)
	// describe says what is held.
	describe(ctx context.Context) (NetworkStatus, error)
	// follow makes the network, which has the name, ready to follow the sources, or the
	// consensus client, that its configuration names. It does so while run runs.
	follow(name string, config NetworkConfig) error
	// run does what a network that was prepared does by itself, until ctx is done or
	// there is nothing to do.
	run(ctx context.Context) error
}

// describeMethods prepares the network to be served and describes its methods.
func (n *network) describeMethods(c Config) error {
	methods, err := n.prepare(c)
	if err != nil {
		return err
	}
	info := openrpc.Info{
		Title: n.name, Version: version(),
		Description: "The methods of the network " + n.name + ", served at /" + n.name + "/v3/KEY over HTTP and at /" + n.name + "/ws/v3/KEY by WebSocket.",
	}
	n.openRPC, n.methods, err = openrpc.Describe(info, methods)
	return err
}

// openServed opens a network to serve it. One that follows nodes need not be there yet.
func openServed(ctx context.Context, data dataDir, name string, config NetworkConfig, options kv.Options) (*network, error) {
	var err error
	switch {
	case config.Genesis != "":
		err = beginNetwork(ctx, data, name, config.Genesis)
	case config.Family == familyStarknet && len(config.Source) > 0 && data.isEmpty(name):
		err = beginStarknet(ctx, data, name, config)
	}
	if err != nil {
		return nil, err
	}
	return openNetwork(ctx, data, name, config, options)
}

// openNetwork opens a network that is there, with its unsettled blocks, or returns
// errNoBlocks where there is nothing of it yet.
func openNetwork(ctx context.Context, data dataDir, name string, config NetworkConfig, options kv.Options) (*network, error) {
	store, format, err := data.openStore(ctx, name, options)
	if err != nil {
		return nil, err
	}
	n := &network{name: name, store: store}
	found := familyEVM
	if format == starknetarchive.Format {
		found = familyStarknet
	}
	switch {
	case config.Family != "" && config.Family != found:
		err = fmt.Errorf("it is of the family %s, the configuration says %s", found, config.Family)
	case found == familyStarknet:
		n.family, err = openStarknet(ctx, store, config)
	default:
		n.family, err = openEVM(ctx, store)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("network %s: %w", name, err), store.Close())
	}
	return n, nil
}

// openStore opens the store of a network that is there, and says in which format
// it is; empty where nothing was written yet.
func (d dataDir) openStore(ctx context.Context, name string, options kv.Options) (store kv.Store, format string, err error) {
	if err := gateway.CheckNetworkName(name); err != nil {
		return nil, "", err
	}
	if d.isEmpty(name) {
		return nil, "", fmt.Errorf("network %s: %s does not hold it; import it first", name, d)
	}
	options.Logger = slog.Default()
	options.Accept = func(r kv.Reader) error {
		if format, err = rows.Format(ctx, r); format == starknetarchive.Format {
			return nil
		}
		return archive.Accept(ctx, r, nil)
	}
	if store, err = stores.Open(d.network(name), options); err != nil {
		return nil, "", fmt.Errorf("network %s: %w", name, err)
	}
	return store, format, nil
}

// evmNetwork is a network of Ethereum's family. It implements [family].
type evmNetwork struct {
	archive  *archive.Archive
	tip      *tip.Tip
	executor *execute.Executor
	chain    *query.Chain
	live     *api.API // what answers; nil until the network is to be served

	following *following // nil where the network has no source
}

func openEVM(ctx context.Context, store kv.Store) (*evmNetwork, error) {
	a, err := openSettled(ctx, store)
	if err != nil {
		return nil, err
	}
	n := &evmNetwork{archive: a}
	if n.executor, err = execute.New(a.Genesis().Config); err != nil {
		return nil, err
	}
	settled, _ := a.Settled()
	if n.tip, err = tip.Open(ctx, store, archive.Tables(), settled); err != nil {
		return nil, err
	}
	n.chain = query.NewChain(a, n.tip, n.executor)
	return n, nil
}

// openSettled opens the settled history that a store holds, or returns errNoBlocks
// where there is nothing of it yet.
func openSettled(ctx context.Context, store kv.Store) (*archive.Archive, error) {
	a, err := archive.Open(ctx, store)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, errNoBlocks
	}
	if err != nil {
		return nil, err
	}
	if _, ok := a.Settled(); !ok {
		return nil, errNoBlocks
	}
	return a, nil
}

// prepare implements [family].
func (n *evmNetwork) prepare(c Config) (*jsonrpc.Methods, error) {
	n.live = api.New(n.chain, api.Config{ClientVersion: ClientVersion(), Forward: n.forward, Syncing: n.syncing, Filters: c.Filters.limits()})
	return n.live.Methods()
}

// syncing is what eth_syncing answers.
func (n *evmNetwork) syncing() (api.Sync, bool) {
	if n.following == nil {
		return api.Sync{}, false
	}
	return n.following.syncing()
}

// forward passes a transaction on to where it can be included: to the nodes that are
// followed. The blocks of a network without them are made from its pool.
func (n *evmNetwork) forward(ctx context.Context, raw []byte) error {
	if n.following == nil {
		return nil
	}
	return n.following.forward(ctx, raw)
}

// describe implements [family].
func (n *evmNetwork) describe(ctx context.Context) (NetworkStatus, error) {
	status := NetworkStatus{Family: familyEVM}
	if id := n.archive.Genesis().Config.ChainID; id != nil {
		status.ChainID = id.Uint64()
	}
	view, err := n.chain.View()
	if err != nil {
		return status, err
	}
	head := view.Head()
	header, err := view.Header(ctx, head.Number)
	if err != nil {
		return status, err
	}
	settled, _ := n.archive.Settled()
	status.Head, status.HeadHash, status.HeadTime = head.Number, head.Hash.Hex(), header.Time
	status.Settled = settled.Number
	if n.following != nil {
		status.Source = n.following.status()
		if n.following.driven != nil {
			status.Consensus = n.following.driven.status()
		}
	}
	return status, nil
}

// run implements [family].
func (n *evmNetwork) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.live.Run(ctx) })
	if n.following != nil {
		group.Go(func() error { return n.following.run(ctx) })
	}
	return group.Wait()
}

// follower brings further blocks into the network. It has one at most.
func (n *evmNetwork) follower(depths ingest.Depths) *ingest.Follower {
	return ingest.NewFollower(n.archive, n.tip, n.executor, depths)
}
