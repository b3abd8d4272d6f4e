package network

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/query"
	"ashlar/evm/source/engine"
	"ashlar/family"
	"ashlar/history/tip"
	"ashlar/jsonrpc"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
)

// network implements [family.Network].
type network struct {
	name     string
	entries  *Entries
	store    kv.Store
	archive  *archive.Archive
	tip      *tip.Tip            // nil if nothing is executed
	watched  *tip.Watched        // what another process writes; nil if none does
	reading  bool                // another process writes the store
	config   *params.ChainConfig // with the forks of its schedule
	executor *execute.Executor
	chain    *query.Chain
	live     *api.API // answers calls; nil until the network is served

	catchUp   func() *family.CatchUp // how fast the network catches up; may be nil
	passing   *passing               // nil if no transactions are passed to nodes while another process follows
	checked   *checked               // nil unless what the archive lacks is read from other nodes
	following *following             // nil if the network has neither source nor engine
	mining    tasks                  // that make the demo's blocks; none in other networks
	retention *keeper                // nil if all history is kept, or another process writes
	engine    *engine.Server         // the listener for the consensus client; nil if it is not driven
}

// watchEvery is the time between two looks at what another process has written.
const watchEvery = 150 * time.Millisecond

// Serve implements [family.Network].
func (n *network) Serve(ctx context.Context, s family.Service) (*jsonrpc.Methods, error) {
	n.name = s.Name
	warnOfUnknownFork(s.Name, n.config)
	n.catchUp = s.CatchUp
	config := api.Config{
		ClientVersion: s.Version.Client, Syncing: n.syncing, BadBlocks: n.badBlocks, Filters: s.Filters,
		Log: slog.With("network", s.Name), StrictClients: n.entries.Pending == pendingStrict,
	}
	if n.checked != nil || len(n.entries.Source) > 0 {
		config.Forward = n.forward
	}
	if n.entries.Scripts {
		config.Workers = s.Workers
	}
	n.live = api.New(n.chain, config)
	methods, err := n.live.Methods()
	if err != nil {
		return nil, err
	}
	if n.checked != nil {
		if methods, err = n.checked.methods(methods); err != nil {
			return nil, err
		}
		if !n.entries.executes() && n.entries.Pool != poolNone {
			_, n.checked.runPool = n.newPool(s.Name)
		}
	}
	if n.watched != nil {
		if methods, err = n.agreed(ctx, methods); err != nil {
			return nil, err
		}
	}
	if n.watched != nil && n.tip != nil {
		return methods, n.passOn(ctx, s)
	}
	if !n.reading {
		n.retention = n.keep(s)
	}
	if n.checked != nil && n.checked.consensus != nil {
		n.checked.api = newEngineAPI(n.checked.consensus, n.config, s.Version, slog.With("network", s.Name))
		n.engine, err = n.listen(ctx, s, methods, n.checked.api)
		return methods, err
	}
	if len(n.entries.Source) == 0 && n.entries.Engine.Listen == "" {
		return methods, nil
	}
	if err := n.follow(ctx, s); err != nil {
		return nil, err
	}
	if n.following.driven == nil {
		return methods, nil
	}
	n.engine, err = n.listen(ctx, s, methods, n.following.driven.api)
	return methods, err
}

// agreed has a network that another process writes agree with the other readers. That also lets a process that removes rows know of
// it. A network that answers from stored blocks takes part whether or not clients see a tip that was executed.
func (n *network) agreed(ctx context.Context, methods *jsonrpc.Methods) (*jsonrpc.Methods, error) {
	if err := n.watched.Join(ctx); err != nil {
		return nil, err
	}
	return methods.After(n.watched.Current)
}

// passOn prepares a network that another process follows to pass transactions to its nodes.
func (n *network) passOn(ctx context.Context, s family.Service) error {
	if len(n.entries.Source) == 0 || n.entries.Pool == poolNone {
		return nil
	}
	return n.pass(ctx, s)
}

// syncing is what eth_syncing answers.
func (n *network) syncing() (api.Sync, bool) {
	if n.following == nil || n.chain.HeadIsRemote() {
		return api.Sync{}, false
	}
	sync, syncing := n.following.syncing()
	if syncing && n.catchUp != nil {
		if pace := n.catchUp(); pace != nil {
			sync.Rate, sync.Remaining = uint64(pace.Rate), uint64(pace.Remaining)
		}
	}
	return sync, syncing
}

// badBlocks are the last invalid blocks that the network received.
func (n *network) badBlocks() []*execute.CheckError {
	if n.following == nil {
		return nil
	}
	return n.following.follower.BadBlocks()
}

// forward sends a transaction to the nodes that are followed, or to those that answer. The
// network has nodes.
func (n *network) forward(ctx context.Context, raw []byte) error {
	switch {
	case n.passing != nil:
		return send(ctx, n.passing.supplier.Pursuit, raw)
	case n.following != nil:
		return n.following.forward(ctx, raw)
	default:
		return n.checked.send(ctx, raw)
	}
}

// Status implements [family.Network].
func (n *network) Status(ctx context.Context) (family.Status, error) {
	status := family.Status{Family: name}
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
	extent := view.Extent()
	status.Retention = n.retention.status()
	status.First = extent.Blocks
	if extent.State > extent.Blocks {
		status.FirstState = extent.State
	}
	if extent.Tries > extent.State {
		status.FirstProof = extent.Tries
	}
	status.Head, status.HeadHash, status.HeadTime = head.Number, head.Hash.Hex(), header.Time
	status.Settled = settled.Number
	status.UnknownFork = unknownFork(n.config)
	if n.checked != nil {
		status.Source = n.checked.status(n.entries.Quorum, head.Number)
		if n.checked.api != nil {
			status.Consensus = consensusStatus(n.checked.api, n.engine)
		}
		if n.checked.light != nil {
			light := n.checked.light.Status()
			status.LightClient = lightStatus(&light)
			status.Consensus = &family.ConsensusStatus{Client: "light client", Forkchoice: status.LightClient.Named, Behind: behindLight(&light, head.Hash, status.Source.Behind)}
		}
		if status.Consensus != nil {
			status.Consensus.Problem = n.checked.head.Problem()
		}
	}
	stopped := n.mining.stopped()
	if n.following != nil {
		status.Source = joinSources(n.following.status(), status.Source)
		stopped = n.following.tasks.stopped()
		if n.following.driven != nil {
			status.Consensus = n.following.driven.status(n.engine)
		}
	}
	if stopped != nil {
		status.Stopped = &family.Stopped{Why: stopped.Err.Error(), Since: stopped.Since.Unix()}
	}
	return status, nil
}

// unknownFork returns the first fork of a schedule that this version does not know, or nil.
func unknownFork(config *params.ChainConfig) *family.UnknownFork {
	fork, ok := execute.UnknownFork(config)
	if !ok {
		return nil
	}
	return &family.UnknownFork{Name: fork.Name, Time: fork.Time.Unix()}
}

// warnOfUnknownFork logs that a schedule has a fork that this version does not know.
func warnOfUnknownFork(network string, config *params.ChainConfig) {
	if fork := unknownFork(config); fork != nil {
		slog.Warn("the chain has a fork that this version does not know: upgrade before it", "network", network, "fork", fork.Name, "time", time.Unix(fork.Time, 0).UTC(), "because", fork.Warning(time.Now()))
	}
}

// Run implements [family.Network].
func (n *network) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if n.checked != nil && !n.checked.begun(ctx) {
			return nil
		}
		return n.live.Run(ctx)
	})
	if n.checked != nil {
		group.Go(func() error { return n.checked.run(ctx) })
	}
	if n.following != nil {
		group.Go(func() error { return n.following.run(ctx) })
	}
	if n.engine != nil {
		group.Go(func() error { return n.engine.Run(ctx) })
	}
	if n.retention != nil {
		group.Go(func() error { return n.retention.run(ctx) })
	}
	if n.passing != nil {
		group.Go(func() error { return n.passing.run(ctx) })
	}
	if n.watched != nil {
		group.Go(func() error { return n.watched.Run(ctx, watchEvery, slog.With("network", n.name)) })
	}
	return group.Wait()
}

// Close implements [family.Network].
func (n *network) Close() error {
	if n.engine == nil {
		return nil
	}
	if err := n.engine.Close(); !errors.Is(err, net.ErrClosed) { // as it is after Run
		return err
	}
	return nil
}

// follower brings further blocks into the network. It has one at most.
func (n *network) follower(depths ingest.Depths) *ingest.Follower {
	return ingest.NewFollower(n.archive, n.tip, n.executor, depths)
}
