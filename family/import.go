package family

import (
	"context"

	"ashlar/kv"
)

// Importer is the part of a [Family] that imports files.
type Importer interface {
	// Flags are the flags of ashlar import that only this family has.
	Flags() []Flag
	// Import opens a network to import files into it, and makes it if it is new.
	// flags has the flags that were given, by name. If there is no error, the
	// import must be closed.
	Import(ctx context.Context, p Place, flags map[string]string) (Import, error)
}

// ImportMemory is what an import may take, of the memory that is not the same for all. Where it is
// zero, the default applies.
type ImportMemory struct {
	Cache  int64 // of the store
	Buffer int64 // of rows that are not stored yet
	State  int64 // the newest state and its tries, among what Go manages
}

// Options returns the options of the store for an import.
func (m ImportMemory) Options() kv.Options {
	return kv.Options{BulkLoad: true, CacheBytes: m.Cache, BufferBytes: m.Buffer}
}

// Flag is a flag of ashlar import whose value is a text.
type Flag struct {
	Name, Usage string
	// Alone says that with this flag an import needs no files.
	Alone bool
}

// Import is an import that is under way. Only Progress may be called at the same time
// as another method.
type Import interface {
	// Run imports the files. If it fails, the blocks up to Progress's Kept stay.
	Run(ctx context.Context, files []string, show Show) error
	// Progress says how far the import is.
	Progress() Progress
	// Compact rewrites the network's store into its smallest form.
	Compact(ctx context.Context) error
	// Close closes the network.
	Close() error
}

// Show displays the progress of an import.
type Show interface {
	// Begin is called when a file is opened, with a function that says how much of
	// it has been read. The function may be called until the next Begin.
	Begin(path string, read func() (read, total int64))
	// Done is called when a file has been imported.
	Done(path string)
}

// Progress is what an import has done so far.
type Progress struct {
	Head, Blocks, Transactions uint64
	Skipped                    uint64 // blocks that were there already
	Kept                       uint64 // the last block that stays whatever happens
	Begun                      bool   // something is stored with which a later import continues
	Rates                      []Rate
	More                       []any // further fields of the log line at the end, as slog takes them
}

// Rate is something of which an import does some each second.
type Rate struct {
	Unit  string // such as tx/s
	Count float64
}
