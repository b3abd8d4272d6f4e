// Package export writes the settled blocks of an EVM network as history files: era1 for
// blocks before the merge, ERE for all, each with a list of checksums.
//
// A file is written under a temporary name and gets its own when all of it is on the
// disk. So whatever stops an export, a file with a history file's name is whole, and
// the next export writes the rest.
package export

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync/atomic"

	"ashlar/evm/archive"
	"ashlar/evm/era"
)

// Options say what to export, and where to.
type Options struct {
	Network string // as the files' names have it
	Format  era.Format
	Folder  string  // made if it does not exist
	From    uint64  // the first block
	To      *uint64 // the last block; nil: the last that the format can hold
}

// ErrRange means that the network does not have the blocks that are asked for, or that
// the format cannot hold them.
var ErrRange = errors.New("cannot export these blocks")

// Exporter exports blocks of one archive.
type Exporter struct {
	archive *archive.Archive
	network string
	format  era.Format
	folder  string
	blocks  era.Range

	head  atomic.Uint64 // the last block of the files that are complete
	files atomic.Uint64 // that are complete
}

// New checks what is asked for against what the archive has, and writes nothing.
func New(ctx context.Context, a *archive.Archive, o Options) (*Exporter, error) {
	head, ok := a.Settled()
	if !ok {
		return nil, fmt.Errorf("%w: the network has none", ErrRange)
	}
	last := head.Number
	if o.To != nil {
		last = *o.To
	}
	switch {
	case o.From > last && o.To != nil:
		return nil, fmt.Errorf("%w: found %d to %d, want the first before the last", ErrRange, o.From, last)
	case a.CheckRange(o.From, last) != nil:
		return nil, fmt.Errorf("%w: %w", ErrRange, a.CheckRange(o.From, last))
	case o.From > head.Number, last > head.Number:
		return nil, fmt.Errorf("%w: found %d to %d, want blocks up to %d, the last settled one", ErrRange, o.From, max(o.From, last), head.Number)
	}
	if o.Format == era.Era1 {
		merge, err := firstAfterMerge(ctx, a, a.Extent().Blocks, head.Number)
		if err != nil {
			return nil, err
		}
		if o.To == nil && merge > o.From {
			last = min(last, merge-1)
		}
		if last >= merge {
			or := ""
			if merge > 0 && merge == a.Extent().Blocks {
				or = " or before"
			}
			return nil, fmt.Errorf("%w: era1 holds blocks before the merge, which comes with block %d%s; want an earlier last block, or ERE", ErrRange, merge, or)
		}
	}
	return &Exporter{archive: a, network: o.Network, format: o.Format, folder: o.Folder, blocks: era.Range{First: o.From, Last: last}}, nil
}

// firstAfterMerge returns the first block from a first one to head without difficulty, or the number after head.
func firstAfterMerge(ctx context.Context, a *archive.Archive, first, head uint64) (uint64, error) {
	var failed error
	i := sort.Search(int(head-first)+1, func(i int) bool {
		header, err := a.Header(ctx, first+uint64(i))
		if err != nil {
			failed = err
			return true
		}
		return header.Difficulty.Sign() == 0
	})
	return first + uint64(i), failed
}

// Progress is how far an export is.
type Progress struct {
	Files uint64 // that are complete
	Head  uint64 // the last block in them
}

// Progress may be called while Run runs.
func (e *Exporter) Progress() Progress { return Progress{Files: e.files.Load(), Head: e.head.Load()} }

// Blocks is which blocks are exported.
func (e *Exporter) Blocks() era.Range { return e.blocks }

// Run writes the files and, after each, the list of checksums. Each file holds the
// blocks of one era that are asked for.
func (e *Exporter) Run(ctx context.Context) error {
	if err := os.MkdirAll(e.folder, 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	list, err := readSums(e.folder)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	from := NewBlocks(e.archive)
	for first := e.blocks.First; ; {
		number := first / era.MaxBlocks
		part := era.Range{First: first, Last: min(e.blocks.Last, number*era.MaxBlocks+era.MaxBlocks-1)}
		if err := e.writeEra(ctx, from, number, part, list); err != nil {
			return fmt.Errorf("export of the blocks %d to %d: %w", part.First, part.Last, err)
		}
		e.head.Store(part.Last)
		e.files.Add(1)
		if part.Last == e.blocks.Last {
			return nil
		}
		first = part.Last + 1
	}
}
