package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"ashlar/evm/ingest/consensus"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/engine"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
)

// EngineConfig is how a consensus client reaches a network that it drives.
type EngineConfig struct {
	Listen string `yaml:"listen"` // address of the listener for it; empty: the network is not driven
	JWT    string `yaml:"jwt"`    // the file with the secret; empty: one in the data directory
}

// check says what is wrong with the entries.
func (c EngineConfig) check() error {
	if c.Listen == "" {
		if c.JWT != "" {
			return errors.New("engine.jwt is given without engine.listen")
		}
		return nil
	}
	if err := checkAddress(c.Listen); err != nil {
		return fmt.Errorf("engine.listen: %w", err)
	}
	return nil
}

// secret is the file with the secret of a network.
func (d dataDir) secret(network string) string {
	return filepath.Join(string(d), "engine", network+".jwt")
}

// driven is what a consensus client drives a network with.
type driven struct {
	chain    *consensus.Chain
	api      *engine.API
	supplier *upstream.Supplier // of missing blocks; nil where no node is asked
}

// drive has a consensus client say what the head is. supplier may be nil.
func (f *following) drive(rules *params.ChainConfig, supplier *upstream.Supplier) {
	d := &driven{supplier: supplier}
	var asked consensus.Supplier
	if supplier != nil {
		f.pursuit, asked = supplier.Pursuit, supplier
	}
	d.chain = consensus.New(f.follower, asked, slog.With("network", f.name))
	client := engine.ClientVersion{Code: "AS", Name: "Ashlar", Version: version(), Commit: commit()}
	d.api = engine.New(engine.Config{Chain: d.chain, Rules: rules, Client: client})
	f.driven = d
}

// run does what a driven network does by itself, until ctx is done.
func (d *driven) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.chain.Run(ctx) })
	if d.supplier != nil {
		group.Go(func() error { return d.supplier.Run(ctx) })
	}
	return group.Wait()
}

// listenEngines opens the listeners for consensus clients.
func (s *service) listenEngines(ctx context.Context) error {
	for _, n := range s.networks {
		evm, ok := n.family.(*evmNetwork)
		if !ok || evm.following == nil || evm.following.driven == nil {
			continue
		}
		server, err := s.listenEngine(ctx, n, evm.following.driven.api)
		if err != nil {
			return fmt.Errorf("network %s: engine: %w", n.name, err)
		}
		s.engines = append(s.engines, server)
	}
	return nil
}

// listenEngine opens the listener for the consensus client of a network, which may
// ask there what everybody may ask.
func (s *service) listenEngine(ctx context.Context, n *network, api *engine.API) (*engine.Server, error) {
	config := s.config.Networks[n.name].Engine
	file := config.JWT
	if file == "" {
		file = dataDir(s.config.Data).secret(n.name)
	}
	secret, err := engine.LoadSecret(file)
	if err != nil {
		return nil, err
	}
	methods := n.methods.Handlers()
	maps.Copy(methods, api.Methods())
	return engine.Listen(ctx, engine.ServerConfig{
		Address: config.Listen, Secret: secret, Methods: methods,
		RPC: jsonrpc.Config{Observer: s.metrics.observer(n.name, slices.Collect(maps.Keys(methods)))}, Log: slog.With("network", n.name),
	})
}

// closeEngines closes listeners that were not run.
func (s *service) closeEngines() (err error) {
	for _, server := range s.engines {
		err = errors.Join(err, server.Close())
	}
	return err
}

// ConsensusStatus is how a network stands to the consensus client that drives it.
type ConsensusStatus struct {
	Client     string `json:"client,omitempty"` // what it calls itself
	Payload    int64  `json:"lastPayload"`      // when it last sent a block, in Unix seconds; 0: not since the start
	Forkchoice int64  `json:"lastForkchoice"`   // the same of the head
	Behind     uint64 `json:"behind"`           // blocks to catch up with, of those that are known
}

func (d *driven) status() *ConsensusStatus {
	heard := d.api.Heard()
	status := &ConsensusStatus{Client: heard.Client, Payload: unixSeconds(heard.Payload), Forkchoice: unixSeconds(heard.Forkchoice)}
	if sync, syncing := d.sync(); syncing {
		status.Behind = sync.Highest - sync.Current
	}
	return status
}

// sync says how far the network is on its way to the head that it was told.
func (d *driven) sync() (consensus.Sync, bool) {
	sync, syncing := d.chain.Sync()
	if syncing && d.supplier != nil {
		if fetched := d.supplier.Status().Sync; fetched != nil {
			sync.Highest = max(sync.Highest, fetched.Highest)
		}
	}
	return sync, syncing
}

// unixSeconds is 0 for no time.
func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
