package network

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"ashlar/family"
	"ashlar/kv"
	"ashlar/starknet/ingest"
	"ashlar/starknet/source/feeder"
)

// flagChain is the flag of ashlar import that names the chain.
const flagChain = "chain"

// Flags implements [family.Importer].
func (Family) Flags() []family.Flag {
	return []family.Flag{{
		Name:  flagChain,
		Usage: "chain ID of a Starknet network, such as SN_MAIN or SN_SEPOLIA (default: that of the public network of the same name, else the name in upper case)",
	}}
}

// Import implements [family.Importer].
func (Family) Import(ctx context.Context, p family.Place, flags map[string]string) (family.Import, error) {
	if err := checkChainName(p.Name, flags[flagChain]); err != nil {
		return nil, err
	}
	a, store, err := create(ctx, p, p.Memory.Options(), flags[flagChain])
	if err != nil {
		return nil, err
	}
	return &imported{store, ingest.New(a)}, nil
}

// imported is a network that is open for an import. It implements [family.Import].
type imported struct {
	store    kv.Store
	importer *ingest.Importer
}

// Run implements [family.Import]. All files and folders are one source: whichever they
// are in, blocks come in the order of their numbers.
func (i *imported) Run(ctx context.Context, paths []string, show family.Show) (err error) {
	files, err := feeder.Open(ctx, paths...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	shown := paths[0]
	if len(paths) > 1 {
		shown = filepath.Dir(shown)
	}
	show.Begin(shown, files.Progress)
	err = i.importer.Import(ctx, files)
	if wrong := (*ingest.BlockError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("%s: %w", files.Path(wrong.Number), err)
	}
	return err
}

// Progress implements [family.Import].
func (i *imported) Progress() family.Progress {
	done := i.importer.Progress()
	return family.Progress{
		Head: done.Head, Blocks: done.Blocks, Transactions: done.Transactions, Skipped: done.Skipped, Kept: done.Kept,
		Rates: []family.Rate{{Unit: "tx/s", Count: float64(done.Transactions)}, {Unit: "events/s", Count: float64(done.Events)}},
		More:  []any{"events", done.Events, "hashes_unchecked", done.Unchecked},
	}
}

// Compact implements [family.Import].
func (i *imported) Compact(ctx context.Context) error { return i.store.Compact(ctx) }

// Close implements [family.Import].
func (i *imported) Close() error { return i.store.Close() }
