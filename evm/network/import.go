package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"ashlar/evm/archive"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/source/file"
	"ashlar/family"
	"ashlar/kv"
)

// The flags of ashlar import.
const (
	flagGenesis    = "genesis"     // names the genesis
	flagTraceIndex = "trace-index" // yes or no
	flagState      = "state"       // names another node's state
	flagOlder      = "older"       // names nodes for the blocks before the first one
)

// Flags implements [family.Importer].
func (Family) Flags() []family.Flag {
	return []family.Flag{{
		Name:  flagGenesis,
		Usage: "genesis file, or one of " + strings.Join(genesis.Names(), ", ") + "; only needed for a new network",
	}, {
		Name:  flagTraceIndex,
		Usage: "whether a new network gets an index of traces: yes or no (default yes)",
	}, {
		Name: flagState, Alone: true,
		Usage: "state that a new network begins with, instead of the genesis: geth:DIR, where DIR is the --datadir of a stopped geth",
	}, {
		Name: flagOlder, Alone: true,
		Usage: "nodes that have the blocks before the network's first block: URLs, separated by commas",
	}}
}

// Import implements [family.Importer].
func (Family) Import(ctx context.Context, p family.Place, flags map[string]string) (family.Import, error) {
	traces, err := parseTraceIndex(flags[flagTraceIndex])
	if err != nil {
		return nil, err
	}
	older, err := parseOlder(flags[flagOlder])
	if err != nil {
		return nil, err
	}
	o := p.Memory.Options()
	if named := flags[flagGenesis]; named != "" {
		if err := checkGenesisName(p.Name, named); err != nil {
			return nil, err
		}
		first, err := loadGenesis(named)
		if err != nil {
			return nil, err
		}
		warnOfUnknownFork(p.Name, first.Config)
		if from := flags[flagState]; from != "" {
			return begin(ctx, p, settings{first, traces, older}, from)
		}
		i, err := create(ctx, p, o, first, traces)
		if err != nil {
			return nil, err
		}
		i.olderNodes = older
		return i, nil
	}
	if flags[flagState] != "" {
		return nil, family.Usage(fmt.Errorf("--%s needs the --%s of the network", flagState, flagGenesis))
	}
	if p.New {
		return nil, fmt.Errorf("it is new, so its genesis must be given: expected --%s with a file or one of %s", flagGenesis, strings.Join(genesis.Names(), ", "))
	}
	o.Accept = func(r kv.Reader) error { return archive.Accept(ctx, r, nil) }
	store, err := p.Open(o)
	if err != nil {
		return nil, err
	}
	a, err := openSettled(ctx, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	warnOfUnknownFork(p.Name, a.Genesis().Config)
	i, err := newImport(ctx, a, store, a.Genesis(), traces, p.Memory.State)
	if err != nil {
		return nil, err
	}
	i.olderNodes = older
	return i, nil
}

// parseTraceIndex parses the flag of the trace index; nil if it is not given.
func parseTraceIndex(flag string) (*bool, error) {
	wanted := flag == "yes"
	switch flag {
	case "":
		return nil, nil
	case "yes", "no":
		return &wanted, nil
	}
	return nil, family.Usage(fmt.Errorf("unknown --%s %q (want yes or no)", flagTraceIndex, flag))
}

// imported is a network that is open for an import. It implements [family.Import].
type imported struct {
	store      kv.Store
	archive    *archive.Archive
	importer   *ingest.Importer
	olderNodes family.Sources // have the blocks before the first one
	passed     atomic.Uint64  // blocks of files that were skipped as a whole
	older      olderBlocks
}

// Run implements [family.Import]. A folder stands for the history files in it.
func (i *imported) Run(ctx context.Context, paths []string, show family.Show) error {
	files, err := file.List(paths...)
	if err != nil {
		return err
	}
	head, _ := i.archive.Settled()
	if err := file.CheckGaps(files, head.Number); err != nil {
		return err
	}
	if err := i.importOlder(ctx, files, show); err != nil {
		return err
	}
	for _, f := range files {
		if err := i.importFile(ctx, f.Path, show); err != nil {
			return err
		}
		show.Done(f.Path)
	}
	return nil
}

func (i *imported) importFile(ctx context.Context, path string, show family.Show) error {
	f, err := file.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	show.Begin(path, f.Progress)
	if n := f.Unchecked(); n > 0 {
		slog.Warn("proofs against the beacon chain are not checked", "file", path, "proofs", n)
	}
	passed, err := i.pass(ctx, f)
	if err == nil && !passed {
		err = i.importer.Import(ctx, f)
	}
	return inFile(path, err)
}

// inFile adds the path of a file to an error of importing its blocks, unless the error names it already.
func inFile(path string, err error) error {
	if about := (*file.Error)(nil); err == nil || errors.As(err, &about) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// pass skips a history file whose blocks the network has already: its headers are
// linked, so the last one tells.
func (i *imported) pass(ctx context.Context, f *file.File) (bool, error) {
	last, ok := f.Last()
	head, _ := i.archive.Settled()
	if !ok || last.Number > head.Number {
		return false, nil
	}
	header, err := i.archive.Header(ctx, last.Number)
	if err != nil || header.Hash != last.Hash {
		return false, err // the import says which block is another
	}
	i.passed.Add(uint64(f.Blocks()))
	return true, nil
}

// Progress implements [family.Import].
func (i *imported) Progress() family.Progress {
	done := i.importer.Progress()
	head, _ := i.archive.Settled()
	skipped := done.Skipped + i.passed.Load()
	return family.Progress{
		Head: head.Number, Blocks: done.Blocks + i.older.blocks.Load(), Transactions: done.Transactions + i.older.transactions.Load(),
		Skipped: skipped - min(skipped, i.older.read.Load()), Kept: done.Kept,
		Rates: []family.Rate{{Unit: "tx/s", Count: float64(done.Transactions)}, {Unit: "Mgas/s", Count: float64(done.Gas) / 1e6}},
		More:  []any{"hash", head.Hash},
	}
}

// Compact implements [family.Import].
func (i *imported) Compact(ctx context.Context) error { return i.store.Compact(ctx) }

// Close implements [family.Import].
func (i *imported) Close() error { return i.store.Close() }
