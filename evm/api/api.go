package api

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/worker"
)

// Config configures an API.
type Config struct {
	// ClientVersion answers web3_clientVersion, such as "Ashlar/v1.0.0/linux-amd64/go1.26".
	ClientVersion string
	// NetworkID answers net_version; 0 means the chain ID, which is nearly always the same.
	NetworkID uint64
	// Forward sends a transaction, in its original encoding, to a node that can include it;
	// nil if blocks are built from the local pool.
	Forward func(ctx context.Context, raw []byte) error
	// Syncing, if not nil, returns the progress towards the head that the chain follows, or
	// false if it has caught up.
	Syncing func() (Sync, bool)
	// BadBlocks, if not nil, returns the last invalid blocks that were received.
	BadBlocks func() []*execute.CheckError
	// Workers run tracers in JavaScript; nil: there are none.
	Workers *worker.Pool
	// StrictClients gives the pending block a number and a logsBloom, which the
	// specification sets to null and several clients require.
	StrictClients bool
	// Log logs what goes wrong without a call; nil: slog.Default.
	Log *slog.Logger
	// Filters bounds the polled filters.
	Filters feed.Limits
	// Now is the clock for expiring filters; nil: time.Now.
	Now func() time.Time
}

// API answers requests about one network. It is safe for concurrent use.
type API struct {
	chain  *query.Chain
	config Config
	hashes hashCache
	tips   query.TipOracle

	publisher  *publisher
	workspaces workspaces
	samples    jsonrpc.Samples[sample]
}

// New returns the API of a chain. Subscriptions and filters also need Run.
func New(chain *query.Chain, config Config) *API {
	config.Log = cmp.Or(config.Log, slog.Default())
	a := &API{chain: chain, config: config, hashes: newHashCache()}
	a.publisher = newPublisher(a, config)
	return a
}

// Methods describes all methods of the API.
func (a *API) Methods() (*jsonrpc.Methods, error) {
	d := a.described()
	all := slices.Concat(
		a.networkMethods(d), a.capabilityMethods(), a.blockMethods(d), a.accessListMethods(), a.transactionMethods(d), a.senderMethods(), a.rawMethods(d), a.badBlockMethods(), a.stateMethods(d),
		a.proofMethods(d), a.feeMethods(d), a.logMethods(d), a.eventMethods(), a.callMethods(d), a.callManyMethods(),
		a.traceMethods(d), a.traceCallManyMethods(), a.traceChainMethods(d), a.parityMethods(d), a.simulateMethods(d), a.rangeMethods(d), a.witnessMethods(d), a.otsMethods(d), a.searchMethods(d),
		a.poolMethods(d), a.syncMethods(), a.fillMethods(d), a.publisher.methods(d),
	)
	all = append(all, modulesMethod(all))
	for i := range all {
		all[i].Handler = all[i].Handler.Translated(translate)
		all[i].Verified = jsonrpc.Executed
	}
	return jsonrpc.NewMethods(all...)
}

// at returns the block that id names and the view that contains it.
func (a *API) at(ctx context.Context, id chain.BlockID) (*query.View, uint64, error) {
	view, err := a.chain.View()
	if err != nil {
		return nil, 0, err
	}
	return view.Resolve(ctx, id)
}
