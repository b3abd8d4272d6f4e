package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"syscall"

	"ashlar/evm/ingest/consensus"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/engine"
	"ashlar/family"
	"ashlar/jsonrpc"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
)

// driven is how a consensus client drives a network.
type driven struct {
	chain    *consensus.Chain
	api      *engine.API
	supplier *upstream.Supplier // of missing blocks; nil if no node is asked
}

// drive lets a consensus client say what the head is. supplier may be nil; its task is the given one.
func (f *following) drive(rules *params.ChainConfig, version family.Version, supplier *upstream.Supplier, task *retry.Task) {
	d := &driven{supplier: supplier}
	var asked consensus.Supplier
	if supplier != nil {
		f.pursuit, asked = supplier.Pursuit, supplier
	}
	log := slog.With("network", f.name)
	d.chain = consensus.New(f.follower, asked, log)
	d.chain.Task = task
	d.api = newEngineAPI(d.chain, rules, version, log)
	f.driven = d
}

// newEngineAPI returns the Engine API of a chain.
func newEngineAPI(chain engine.Chain, rules *params.ChainConfig, version family.Version, log *slog.Logger) *engine.API {
	client := engine.ClientVersion{Code: "AS", Name: "Ashlar", Version: version.Release, Commit: version.Commit}
	return engine.New(engine.Config{Chain: chain, Rules: rules, Client: client, Log: log})
}

// run does what a driven network does by itself until ctx is done.
func (d *driven) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.chain.Run(ctx) })
	if d.supplier != nil {
		group.Go(func() error { return d.supplier.Run(ctx) })
	}
	return group.Wait()
}

// listen opens the listener for the network's consensus client, which may call there
// what the network's other clients may call too.
func (n *network) listen(ctx context.Context, s family.Service, methods *jsonrpc.Methods, api *engine.API) (*engine.Server, error) {
	file, err := n.entries.Engine.secret(s)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	secret, err := engine.LoadSecret(file)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	all := methods.Handlers()
	maps.Copy(all, api.Methods())
	server, err := engine.Listen(ctx, engine.ServerConfig{
		Address: n.entries.Engine.Listen, Secret: secret, Methods: all,
		RPC: jsonrpc.Config{Observer: s.Observe(slices.Collect(maps.Keys(all)))}, Log: slog.With("network", s.Name),
	})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("engine: listen: %s is used by another network or process: expected an address of its own: %w", n.entries.Engine.Listen, err)
	case err != nil:
		return nil, fmt.Errorf("engine: listen: %w", err)
	}
	return server, nil
}

func (d *driven) status(server *engine.Server) *family.ConsensusStatus {
	status := consensusStatus(d.api, server)
	if sync, syncing := d.sync(); syncing {
		status.Behind = sync.Highest - sync.Current
	}
	return status
}

// consensusStatus says when a consensus client last called, and what it was answered.
func consensusStatus(api *engine.API, server *engine.Server) *family.ConsensusStatus {
	last := api.LastCalls()
	status := &family.ConsensusStatus{Client: last.Client, Payload: family.Seconds(last.Payload), Forkchoice: family.Seconds(last.Forkchoice)}
	if server == nil { // it does not listen yet
		return status
	}
	answers := api.Answers()
	status.Answers = &family.ConsensusAnswers{
		Payloads: counts(answers.Payloads), Forkchoices: counts(answers.Forkchoices), Refused: counts(server.Refused()), Held: server.Held(),
	}
	return status
}

// counts returns counters with their names in lower case.
func counts[T ~string](all map[T]uint64) map[string]uint64 {
	named := make(map[string]uint64, len(all))
	for name, n := range all {
		named[strings.ToLower(string(name))] = n
	}
	return named
}

// sync says how far the network is from the head that the client named.
func (d *driven) sync() (consensus.Sync, bool) {
	sync, syncing := d.chain.Sync()
	if syncing && d.supplier != nil {
		if fetched := d.supplier.Status().Sync; fetched != nil {
			sync.Highest = max(sync.Highest, fetched.Highest)
		}
	}
	return sync, syncing
}
