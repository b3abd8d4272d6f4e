package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ashlar/kv"
	"ashlar/starknet/ingest"
	"ashlar/starknet/source/feeder"
)

// runStarknet brings the blocks of a feeder gateway's files into a Starknet network.
func (i Import) runStarknet(ctx context.Context, out *os.File) error {
	data := dataDir(i.Data)
	if err := data.check(); err != nil {
		return err
	}
	id := i.Chain
	if id == "" && data.isEmpty(i.Network) {
		id = chainID(i.Network)
	}
	a, store, err := data.createStarknet(ctx, i.Network, kv.Options{BulkLoad: true, CacheBytes: importCache}, id)
	if err != nil {
		return err
	}
	importer := ingest.New(a)
	bar := newImportProgress(out, func() counted { return countedEvents(importer.Progress()) })
	err = i.importFeeder(ctx, importer, bar)
	bar.end()
	done := importer.Progress()
	if err == nil && i.Compact && done.Blocks > 0 {
		slog.Info("compacting")
		err = store.Compact(ctx)
	}
	if closeErr := store.Close(); !errors.Is(err, kv.ErrFailed) { // else it says the same again
		err = errors.Join(err, closeErr)
	}
	if err != nil {
		slog.Info("import stopped", "network", i.Network, "kept", done.Kept, "took", bar.took())
		return explain(err, done.Kept)
	}
	disk, err := data.networkBytes(i.Network)
	slog.Info("imported", "network", i.Network, "blocks", done.Blocks, "transactions", done.Transactions, "events", done.Events,
		"skipped", done.Skipped, "hashes_unchecked", done.Unchecked, "head", done.Head, "took", bar.took(), "disk", readableBytes(disk))
	return err
}

// importFeeder imports all files and folders as one source: whichever they are in,
// blocks come in the order of their numbers.
func (i Import) importFeeder(ctx context.Context, importer *ingest.Importer, bar *importProgress) (err error) {
	files, err := feeder.Open(ctx, i.Files...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	name := i.Files[0]
	if len(i.Files) > 1 {
		name = filepath.Dir(name)
	}
	bar.begin(name, files.Progress)
	err = importer.Import(ctx, files)
	if wrong := (*ingest.BlockError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("%s: %w", files.Path(wrong.Number), err)
	}
	return err
}

func countedEvents(done ingest.Progress) counted {
	return counted{
		head: done.Head, blocks: done.Blocks, skipped: done.Skipped, kept: done.Kept,
		rates: []rate{{"tx/s", float64(done.Transactions)}, {"events/s", float64(done.Events)}},
	}
}
