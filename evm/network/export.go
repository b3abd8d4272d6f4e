package network

import (
	"context"
	"errors"
	"fmt"

	"ashlar/evm/era"
	"ashlar/evm/export"
	"ashlar/family"
	"ashlar/kv"
)

// exportFormats are the formats of history files by their names on the command line.
var exportFormats = map[string]era.Format{"era1": era.Era1, "ere": era.ERE}

// Formats implements [family.Exporter].
func (Family) Formats() []string { return []string{"era1", "ere"} }

// Export implements [family.Exporter].
func (Family) Export(ctx context.Context, store kv.Store, e family.Export) (family.Exporting, error) {
	format, ok := exportFormats[e.Format]
	if !ok {
		return nil, fmt.Errorf("unknown format %q (want era1 or ere)", e.Format)
	}
	a, err := openSettled(ctx, store)
	if err != nil {
		return nil, err
	}
	exporter, err := export.New(ctx, a, export.Options{Network: e.Network, Format: format, Folder: e.Folder, From: e.From, To: e.To})
	if errors.Is(err, export.ErrRange) {
		return nil, rangeError{err}
	}
	if err != nil {
		return nil, err
	}
	return exporting{exporter}, nil
}

// rangeError is a [family.ErrRange] with a text of its own.
type rangeError struct{ error }

func (e rangeError) Unwrap() []error { return []error{e.error, family.ErrRange} }

// exporting implements [family.Exporting].
type exporting struct{ *export.Exporter }

// Blocks implements [family.Exporting].
func (e exporting) Blocks() (first, last uint64) {
	blocks := e.Exporter.Blocks()
	return blocks.First, blocks.Last
}

// Progress implements [family.Exporting].
func (e exporting) Progress() (files, last uint64) {
	done := e.Exporter.Progress()
	return done.Files, done.Head
}
