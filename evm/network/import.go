package network

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ashlar/evm/archive"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/source/file"
	"ashlar/family"
	"ashlar/kv"
)

// importCache holds the bloom filters of tables that are not merged yet. With less,
// every lookup of a new slot reads some of them again.
const importCache = 384 << 20

// flagGenesis is the flag of ashlar import that names the genesis.
const flagGenesis = "genesis"

// Flags implements [family.Importer].
func (Family) Flags() []family.Flag {
	return []family.Flag{{
		Name:  flagGenesis,
		Usage: "genesis file, or one of " + strings.Join(genesis.Names(), ", ") + "; only needed for a new network",
	}}
}

// Import implements [family.Importer].
func (Family) Import(ctx context.Context, p family.Place, flags map[string]string) (family.Import, error) {
	o := kv.Options{BulkLoad: true, CacheBytes: importCache, Apart: archive.LargestTable()}
	if named := flags[flagGenesis]; named != "" {
		first, err := loadGenesis(named)
		if err != nil {
			return nil, err
		}
		return importOrNil(create(ctx, p, o, first))
	}
	if p.New {
		return nil, errors.New("it is new, so its genesis must be given")
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
	return importOrNil(newImport(ctx, a, store, a.Genesis()))
}

func importOrNil(i *imported, err error) (family.Import, error) {
	if err != nil {
		return nil, err
	}
	return i, nil
}

// imported is a network that is open for an import. It implements [family.Import].
type imported struct {
	store    kv.Store
	archive  *archive.Archive
	importer *ingest.Importer
}

// Run implements [family.Import].
func (i *imported) Run(ctx context.Context, files []string, show family.Show) error {
	for _, path := range files {
		if err := i.importFile(ctx, path, show); err != nil {
			return err
		}
		show.Done(path)
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
	err = i.importer.Import(ctx, f)
	if about := (*file.Error)(nil); err == nil || errors.As(err, &about) {
		return err // it names the file
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Progress implements [family.Import].
func (i *imported) Progress() family.Progress {
	done := i.importer.Progress()
	head, _ := i.archive.Settled()
	return family.Progress{
		Head: done.Head, Blocks: done.Blocks, Transactions: done.Transactions, Skipped: done.Skipped, Kept: done.Kept,
		Rates: []family.Rate{{Unit: "tx/s", Count: float64(done.Transactions)}, {Unit: "Mgas/s", Count: float64(done.Gas) / 1e6}},
		More:  []any{"hash", head.Hash},
	}
}

// Compact implements [family.Import].
func (i *imported) Compact(ctx context.Context) error { return i.store.Compact(ctx) }

// Close implements [family.Import].
func (i *imported) Close() error { return i.store.Close() }
