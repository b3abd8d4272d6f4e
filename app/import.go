package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/source/file"
	"ashlar/gateway"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
)

// importCollector and importMemory trade memory, of which an import may use up to
// 2 GiB, for time: the collector runs less often until the limit is near.
//
// importCache holds the bloom filters of tables that are not merged yet: with
// less, every look for a slot that is new reads some of them again.
const (
	importCollector = 400
	importMemory    = 1024 << 20
	importCache     = 384 << 20
)

// Import is what `ashlar import` is told.
type Import struct {
	Data    string
	Network string
	Family  string // of a new network; empty: evm
	Genesis string // of an EVM network: a file or a built-in network's name; may be empty for a network that is there
	Chain   string // of a Starknet network: its chain's ID; empty: see chainID
	Files   []string
	Compact bool
}

// Run brings the blocks of the files into the network's archive, and shows on
// out how far it is.
func (i Import) Run(ctx context.Context, out *os.File) error {
	if err := i.check(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(importCollector)
		debug.SetMemoryLimit(importMemory)
	}
	if i.Family == familyStarknet {
		return i.runStarknet(ctx, out)
	}
	n, err := i.open(ctx)
	if err != nil {
		return err
	}
	done, took, err := i.bringIn(ctx, n, out)
	if closeErr := n.store.Close(); !errors.Is(err, kv.ErrFailed) { // else it says the same again
		err = errors.Join(err, closeErr)
	}
	if err != nil {
		slog.Info("import stopped", "network", i.Network, "kept", done.Kept, "took", took)
		return explain(err, done.Kept)
	}
	head, _ := n.archive.Settled()
	disk, err := dataDir(i.Data).networkBytes(i.Network)
	slog.Info("imported", "network", i.Network, "blocks", done.Blocks, "transactions", done.Transactions,
		"skipped", done.Skipped, "head", head.Number, "hash", head.Hash, "took", took, "disk", readableBytes(disk))
	return err
}

// check says what is wrong with what the import is told, before anything is made.
func (i Import) check() error {
	if err := gateway.CheckNetworkName(i.Network); err != nil {
		return err
	}
	switch {
	case i.Family != "" && i.Family != familyEVM && i.Family != familyStarknet:
		return fmt.Errorf("%q is no family: expected %s or %s", i.Family, familyEVM, familyStarknet)
	case i.Family == familyStarknet && i.Genesis != "":
		return errors.New("a Starknet network has no genesis file: its first block may be any")
	case i.Family != familyStarknet && i.Chain != "":
		return errors.New("a chain ID is given to Starknet networks only: that of others is in the genesis")
	}
	for _, path := range i.Files {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("chain file: %w", err)
		}
	}
	return nil
}

// explain adds what is kept, and what to do, to the error of a store that its disk has failed.
func explain(err error, kept uint64) error {
	var file *fs.PathError
	switch {
	case errors.Is(err, kv.ErrFull) && errors.As(err, &file):
		return fmt.Errorf("%w: %s cannot be written (%w). Blocks up to %d are kept. Make room and run the same command again: it goes on from there",
			kv.ErrFull, file.Path, file.Err, kept)
	case errors.Is(err, kv.ErrFailed):
		return fmt.Errorf("%w. Blocks up to %d are kept. When the disk is well, run the same command again: it goes on from there", err, kept)
	}
	return err
}

// bringIn imports the files one after the other and returns what that took, compacting aside.
func (i Import) bringIn(ctx context.Context, n *importNetwork, out *os.File) (done ingest.Progress, took time.Duration, err error) {
	bar := newImportProgress(out, n.counted)
	for _, path := range i.Files {
		if err = importFile(ctx, n.importer, bar, path); err != nil {
			break
		}
		bar.done(path)
	}
	bar.end()
	done = n.importer.Progress()
	if err == nil && i.Compact && done.Blocks > 0 {
		slog.Info("compacting")
		err = n.store.Compact(ctx)
	}
	return done, bar.took(), err
}

// importNetwork is a network that is open for an import.
type importNetwork struct {
	store    kv.Store
	archive  *archive.Archive
	importer *ingest.Importer
}

func (n *importNetwork) counted() counted {
	done := n.importer.Progress()
	return counted{
		head: done.Head, blocks: done.Blocks, skipped: done.Skipped, kept: done.Kept,
		rates: []rate{{"tx/s", float64(done.Transactions)}, {"Mgas/s", float64(done.Gas) / 1e6}},
	}
}

// open opens the network, or makes it from its genesis.
func (i Import) open(ctx context.Context) (*importNetwork, error) {
	data := dataDir(i.Data)
	if err := data.check(); err != nil {
		return nil, err
	}
	if i.Genesis == "" && data.isEmpty(i.Network) {
		return nil, fmt.Errorf("network %s: it is new, so its genesis must be given", i.Network)
	}
	options := kv.Options{BulkLoad: true, CacheBytes: importCache, Apart: archive.LargestTable()}
	if i.Genesis == "" {
		a, store, err := data.openArchive(ctx, i.Network, options)
		if err != nil {
			return nil, err
		}
		return newImport(ctx, a, store, a.Genesis())
	}
	first, err := genesis.Load(i.Genesis)
	if err != nil {
		return nil, err
	}
	a, store, err := data.createNetwork(ctx, i.Network, options, first)
	if err != nil {
		return nil, err
	}
	return newImport(ctx, a, store, first)
}

func newImport(ctx context.Context, a *archive.Archive, store kv.Store, first *core.Genesis) (*importNetwork, error) {
	executor, err := execute.New(first.Config)
	if err == nil {
		var importer *ingest.Importer
		if importer, err = ingest.New(ctx, a, executor, first); err == nil {
			return &importNetwork{store, a, importer}, nil
		}
	}
	return nil, errors.Join(err, store.Close())
}

func importFile(ctx context.Context, importer *ingest.Importer, bar *importProgress, path string) error {
	f, err := file.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	bar.begin(path, f.Progress)
	err = importer.Import(ctx, f)
	if about := (*file.Error)(nil); err == nil || errors.As(err, &about) {
		return err // it names the file
	}
	return fmt.Errorf("%s: %w", path, err)
}
