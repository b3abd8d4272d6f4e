// Package network implements [family.Family] for EVM networks: it opens, follows,
// imports, verifies and describes them. It puts the packages below it together, and has no
// rules of a chain of its own.
//
// Which parts a served network has depends on its entries in the configuration, and on
// whether another process writes its store:
//
//	following   executes blocks of nodes (source), or of a consensus client (driven)
//	checked     reads from nodes what the archive lacks, and proves it (check: state)
//	watched     shows the blocks that another process writes
//	passing     sends the transactions of clients to nodes, beside watched
//	retention   removes older history
//
// A network without any of them answers from its archive, whose head stays.
package network

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/query"
	"ashlar/family"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
)

const name = "evm"

// Family implements [family.Family].
type Family struct{}

// Name implements [family.Family].
func (Family) Name() string { return name }

// Stores implements [family.Family].
func (Family) Stores() bool { return true }

// Begin implements [family.Opener]. A network whose entries name no genesis must be
// there.
func (Family) Begin(ctx context.Context, p family.Place, e family.Entries) error {
	entries := e.(*Entries)
	if entries.Genesis == "" {
		return nil
	}
	first, err := loadGenesis(entries.Genesis)
	if err != nil {
		return err
	}
	i, err := create(ctx, p, kv.Options{}, first, entries.TraceIndex)
	if err != nil {
		return err
	}
	return i.Close()
}

// Accept implements [family.Opener].
func (Family) Accept(ctx context.Context, r kv.Reader) error { return archive.Accept(ctx, r, nil) }

// Tables implements [family.Opener].
func (Family) Tables() []*kv.Table { return slices.Concat(archive.Tables(), tip.Tables()) }

// Open implements [family.Opener].
func (Family) Open(ctx context.Context, store kv.Store, e family.Entries, reading bool) (family.Network, error) {
	a, err := openSettled(ctx, store)
	if err != nil {
		return nil, err
	}
	entries := e.(*Entries)
	if err := checkTraceIndex(a, entries.TraceIndex); err != nil {
		return nil, err
	}
	n, err := newNetwork(a, entries, execute.RecordTraces(a.HasTraces()))
	if err != nil {
		return nil, err
	}
	n.store, n.reading = store, reading
	if err := n.openTip(ctx); err != nil {
		return nil, err
	}
	n.chain = query.NewChain(a, n.tip, n.executor)
	if entries.Checked != "" {
		if err := n.complete(ctx); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// openTip opens the tip of executed blocks, if clients see it. A reader watches in any case what another
// process does with the store: that moves its window, and may rewind it.
func (n *network) openTip(ctx context.Context) (err error) {
	if n.reading {
		if n.watched, err = tip.Watch(ctx, n.store, archive.Tables(), n.archive.Refresh); err == nil && n.entries.executes() {
			n.tip = n.watched.Tip
		}
		return err
	}
	if !n.entries.executes() {
		return nil
	}
	settled, _ := n.archive.Settled()
	n.tip, err = tip.Open(ctx, n.store, archive.Tables(), settled)
	return err
}

// newNetwork returns a network over an archive, which has no tip yet.
func newNetwork(a *archive.Archive, entries *Entries, options ...execute.Option) (*network, error) {
	config := a.Genesis().Config
	executor, err := execute.New(config, options...)
	if err != nil {
		return nil, err
	}
	if entries.CallGas > 0 {
		executor.LimitCallGas(entries.CallGas)
	}
	a.CacheState(int64(entries.StateCache))
	return &network{archive: a, entries: entries, config: config, executor: executor}, nil
}

// openSettled opens the settled history in a store, or returns [family.ErrNoBlocks].
func openSettled(ctx context.Context, store kv.Store) (*archive.Archive, error) {
	return settled(archive.Open(ctx, store))
}

// settled returns an archive that has been opened, or [family.ErrNoBlocks] if it has no
// settled block.
func settled(a *archive.Archive, err error) (*archive.Archive, error) {
	if errors.Is(err, kv.ErrNotFound) {
		return nil, family.ErrNoBlocks
	}
	if err != nil {
		return nil, err
	}
	if _, ok := a.Settled(); !ok {
		return nil, family.ErrNoBlocks
	}
	return a, nil
}

// loadGenesis loads a genesis, and logs which fields of its file are ignored.
func loadGenesis(nameOrPath string) (*core.Genesis, error) {
	first, warnings, err := genesis.Load(nameOrPath)
	for _, warning := range warnings {
		slog.Warn("the genesis file is used with a warning", "file", nameOrPath, "warning", warning)
	}
	return first, err
}

// create opens a network to bring blocks into it, or makes it with its genesis. An
// existing network of another chain is refused and stays as it is. traces says whether it
// has a trace index; nil: a new one has, an existing one stays as it is.
func create(ctx context.Context, p family.Place, o kv.Options, first *core.Genesis, traces *bool) (*imported, error) {
	o.Accept = func(r kv.Reader) error { return archive.Accept(ctx, r, first) }
	store, err := p.Open(o)
	if err != nil {
		return nil, err
	}
	var features []archive.Feature
	if traces == nil || *traces {
		features = append(features, archive.TraceIndex)
	}
	a, err := archive.Create(ctx, store, first, features...)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return newImport(ctx, a, store, first, traces, p.Memory.State)
}

// checkTraceIndex returns an error if a network has no trace index but should have one, or
// the other way round. wanted may be nil.
func checkTraceIndex(a *archive.Archive, wanted *bool) error {
	switch {
	case wanted == nil || *wanted == a.HasTraces():
		return nil
	case *wanted:
		return errors.New("the network has no trace index, and it cannot be added: leave the setting out, or import the network again")
	default:
		return errors.New("the network has a trace index, and it cannot be removed: leave the setting out, or import the network again")
	}
}

// newImport makes an import into an archive, which keeps memory bytes of the newest state, 0 for the default. It
// closes the store if that fails.
func newImport(ctx context.Context, a *archive.Archive, store kv.Store, first *core.Genesis, traces *bool, memory int64) (*imported, error) {
	if err := checkTraceIndex(a, traces); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	executor, err := execute.New(a.Genesis().Config, execute.RecordTraces(a.HasTraces()))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	a.CacheState(0) // the importer caches what it reads
	importer, err := ingest.New(ctx, a, executor, first, ingest.Memory(memory))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &imported{store: store, archive: a, importer: importer}, nil
}
