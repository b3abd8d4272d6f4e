package api

import (
	"context"
	"slices"
	"time"

	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
)

// Config is what an API says about the program that it is part of.
type Config struct {
	// ClientVersion answers web3_clientVersion, like "Ashlar/v1.0.0/linux-amd64/go1.26".
	ClientVersion string
	// NetworkID answers net_version; 0 means the chain's identifier, which it
	// is on nearly every network.
	NetworkID uint64
	// Forward passes a transaction on, as it was sent, to where it can be
	// included; nil where the pool is that place.
	Forward func(ctx context.Context, raw []byte) error
	// Syncing, if not nil, says how far the chain is on its way to the head that it
	// follows; false where it is there.
	Syncing func() (Sync, bool)
	// Filters bounds the filters that are polled.
	Filters feed.Limits
	// Now is the time by which filters expire; nil: time.Now.
	Now func() time.Time
}

// API answers questions about one network. It may be used from many goroutines at once.
type API struct {
	chain  *query.Chain
	config Config
	hashes hashCache
	tips   query.TipOracle

	publisher  *publisher
	workspaces workspaces
	samples    jsonrpc.Samples[sample]
}

// New makes the API of a chain. Subscriptions and filters also need Run.
func New(chain *query.Chain, config Config) *API {
	a := &API{chain: chain, config: config, hashes: newHashCache()}
	a.publisher = newPublisher(a, config)
	return a
}

// Methods describes all methods of the API.
func (a *API) Methods() (*jsonrpc.Methods, error) {
	p := a.parameters()
	all := slices.Concat(
		a.networkMethods(), a.capabilityMethods(), a.blockMethods(p), a.accessListMethods(), a.transactionMethods(p), a.rawMethods(p), a.stateMethods(p),
		a.proofMethods(p), a.feeMethods(), a.logMethods(p), a.eventMethods(), a.callMethods(p), a.callManyMethods(), a.traceMethods(p), a.parityMethods(p), a.simulateMethods(p), a.rangeMethods(p), a.poolMethods(), a.publisher.methods(),
	)
	all = append(all, modulesMethod(all))
	for i := range all {
		all[i].Handler = all[i].Handler.Translated(translate)
	}
	return jsonrpc.NewMethods(all...)
}

// at finds the block that id names, and the view that it is in.
func (a *API) at(ctx context.Context, id query.BlockID) (*query.View, uint64, error) {
	view, err := a.chain.View()
	if err != nil {
		return nil, 0, err
	}
	return view.Resolve(ctx, id)
}
