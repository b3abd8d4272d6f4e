package family

import (
	"context"

	"ashlar/kv"
)

// Exporter is a [Family] whose networks can be written to files that other software
// reads. A family need not be one.
type Exporter interface {
	// Formats are the names of the formats in which the family exports.
	Formats() []string
	// Export prepares to export blocks of the network in a store, which is only read.
	// It returns ErrRange if the network does not have them, or the format cannot
	// hold them. Nothing is written yet.
	Export(ctx context.Context, store kv.Store, e Export) (Exporting, error)
}

// Export is what is to be exported.
type Export struct {
	Network string // its name
	Format  string // one of the family's
	Folder  string // where to; made if it does not exist
	From    uint64
	To      *uint64 // nil: the last block that the format can hold
}

// Exporting is an export that is prepared.
type Exporting interface {
	// Blocks are the first and the last block of the export.
	Blocks() (first, last uint64)
	// Run writes the files. If it fails, those that are complete stay, and the next
	// export replaces them by the same.
	Run(ctx context.Context) error
	// Progress is how many files are complete, and the last block in them. It may be
	// called while Run runs.
	Progress() (files, last uint64)
}
