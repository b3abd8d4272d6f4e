// Package command implements the commands of ashlar that work on stored networks and
// accounts, in a data directory or a keyspace. cmd/ashlar parses their flags.
//
// A command is a struct of its arguments with methods such as Run, or a function. There are
// three kinds, by what they do if a server has a data directory open:
//
//	serve, demo                          are the server
//	status, network, account, key, team  work through the server's control socket
//	backup, snapshot create
//	all others                           need the store for themselves; those with a field Pause
//	                                     can borrow the network from the server meanwhile
//
// The package shows progress and writes results. What happens to the contents of a store is
// up to the families.
package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"

	"ashlar/app"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// Import is ashlar import.
type Import struct {
	Data    string
	Config  string // a configuration file that says where the stores are, instead of Data
	Network string
	Family  string            // family of a new network; empty: the default
	Flags   map[string]string // flags of the family that were given
	Files   []string
	Compact bool
	Pause   bool         // a running server stops serving the network meanwhile
	Memory  family.Bytes // that it may take; 0: DefaultMemory

	// begin, if set, opens the network in place of the family's Import, without files.
	begin func(ctx context.Context, f family.Family, p family.Place) (family.Import, error)
}

// Run imports the blocks of the files into the network, and shows its progress on out.
func (i Import) Run(ctx context.Context, out *os.File) (err error) {
	f, err := i.check()
	if err != nil {
		return err
	}
	if i.Memory == 0 {
		i.Memory = DefaultMemory
	}
	memory := PrepareImport(i.Memory)
	warnOfMemory(slog.Default(), i.Memory, availableMemory(), debug.SetMemoryLimit(-1))
	data, c, err := openStores(ctx, i.Data, i.Config, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	return duringPause(ctx, c, i.Network, i.Pause, func() error { return i.run(ctx, data, f, memory, out) })
}

// run imports the blocks into a network of the family f.
func (i Import) run(ctx context.Context, data store.Stores, f family.Family, memory family.ImportMemory, out *os.File) error {
	if dir, ok := data.(store.Dir); ok {
		if err := dir.Check(); err != nil {
			return err
		}
	}
	place, err := app.Place(ctx, data, f, i.Network)
	if err != nil {
		return err
	}
	place.Memory = memory
	made, open := false, place.Open // made: the store is this import's own
	place.Open = func(o kv.Options) (kv.Store, error) {
		exists, err := data.Exists(ctx, i.Network) // another process may have made it since
		if err != nil {
			return nil, err
		}
		made = !exists
		accept := o.Accept
		o.Accept = func(r kv.Reader) error { // there is one
			made = false
			if accept == nil {
				return nil
			}
			return accept(r)
		}
		store, err := open(o)
		if errors.Is(err, kv.ErrInUse) {
			made = false
		}
		return store, err
	}
	under, err := i.open(ctx, f, place)
	if err != nil {
		return errors.Join(fmt.Errorf("network %s: %w", i.Network, err), i.undo(data, made))
	}
	bar := newImportProgress(out, under.Progress)
	err = under.Run(ctx, i.Files, bar)
	bar.end()
	done := under.Progress()
	if err == nil && len(i.Files) > 0 && done.Blocks == 0 && done.Skipped == 0 {
		err = errNoBlocks
	}
	// Blocks that were skipped may be those of an import that was stopped while it compacted. It takes
	// no time to compact again what is compact.
	if err == nil && i.Compact && done.Blocks+done.Skipped > 0 {
		slog.Info("compacting")
		err = under.Compact(ctx)
	}
	if closeErr := under.Close(); !errors.Is(err, kv.ErrFailed) { // else it repeats the error
		err = errors.Join(err, closeErr)
	}
	if err != nil && done.Blocks == 0 && done.Skipped == 0 && !done.Begun && made {
		return errors.Join(fmt.Errorf("network %s was not created: %w", i.Network, err), i.undo(data, true))
	}
	if err != nil {
		slog.Info("import stopped", "network", i.Network, "kept", done.Kept, "took", bar.took())
		return explain(err, done.Kept)
	}
	fields := append([]any{"network", i.Network, "blocks", done.Blocks, "transactions", done.Transactions, "skipped", done.Skipped, "head", done.Head}, done.More...)
	fields = append(fields, "took", bar.took())
	if dir, ok := data.(store.Dir); ok {
		disk, err := dir.Bytes(i.Network)
		if err != nil {
			return err
		}
		fields = append(fields, "disk", readableBytes(disk))
	}
	slog.Info("imported", fields...)
	return nil
}

// open opens the network.
func (i Import) open(ctx context.Context, f family.Family, p family.Place) (family.Import, error) {
	if i.begin != nil {
		return i.begin(ctx, f, p)
	}
	return f.Import(ctx, p, i.Flags)
}

// errNoBlocks means that the files are valid, and empty.
var errNoBlocks = errors.New("the files have no blocks")

// undo removes the store of a network that this import made and brought nothing into: it
// would be served with its genesis alone, or refused as empty. A store that another process has
// open is not this import's.
func (i Import) undo(stores store.Stores, made bool) error {
	dir, ok := stores.(store.Dir)
	if !ok || !made {
		return nil
	}
	if err := dir.Remove(i.Network); !errors.Is(err, kv.ErrInUse) {
		return err
	}
	return nil
}

// check returns the family, or an error if the arguments are invalid, before anything is
// created.
func (i Import) check() (family.Family, error) {
	if err := checkName(i.Network); err != nil {
		return nil, err
	}
	f, err := app.Families().Named(i.Family)
	if err != nil {
		return nil, family.Usage(err)
	}
	if !f.Stores() {
		return nil, family.Usage(fmt.Errorf("networks of family %s store no blocks: expected another --family", f.Name()))
	}
	if i.begin != nil {
		return f, nil
	}
	for name := range i.Flags {
		if !hasFlag(f, name) {
			return nil, family.Usage(fmt.Errorf("--%s is not for networks of family %s; see --family", name, f.Name()))
		}
	}
	if err := i.checkFiles(f); err != nil {
		return nil, err
	}
	return f, nil
}

// ErrNoFiles means that an import has no files, nor a flag such as --state with which it
// needs none.
var ErrNoFiles = errors.New("no files were given (want at least one to import)")

// checkFiles checks that there is something to import.
func (i Import) checkFiles(f family.Family) error {
	alone := slices.ContainsFunc(f.Flags(), func(flag family.Flag) bool { return flag.Alone && i.Flags[flag.Name] != "" })
	if len(i.Files) == 0 && !alone {
		return ErrNoFiles
	}
	for _, path := range i.Files {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("chain file: %w", err)
		}
	}
	return nil
}

func hasFlag(f family.Family, name string) bool {
	return slices.ContainsFunc(f.Flags(), func(flag family.Flag) bool { return flag.Name == name })
}

// ImportFlags returns the flags of ashlar import that belong to a single family.
func ImportFlags() (all []family.Flag) {
	for _, f := range app.Families() {
		if f.Stores() {
			all = append(all, f.Flags()...)
		}
	}
	return all
}

// explain adds to the error of a failed disk which blocks are kept and what to do.
func explain(err error, kept uint64) error {
	return adviseOnStore(err, fmt.Sprintf("Blocks up to %d are kept. ", kept), "it continues from there")
}
