// Package family is the contract between the service and the kinds of network that it
// serves. A family (EVM, Starknet, forwarded) implements [Family] in a folder of its own;
// the service lists the families in one place, app/families.go, and knows nothing else
// about them.
//
// A family must not depend on another one. What two families share belongs to the
// packages below them, such as history, feed, events, upstream, kv and jsonrpc.
package family

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ashlar/history/audit"
	"ashlar/history/rows"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/openrpc"
	"ashlar/kv"
)

var (
	// ErrNoBlocks is returned when a network is opened of which not even the first
	// block is stored: the import that created it was stopped at its very beginning.
	ErrNoBlocks = errors.New("it holds no blocks yet; import them again, for an EVM network with its genesis")
	// ErrUnconfigured is returned when a network is opened that cannot be served without entries of
	// its own in the configuration.
	ErrUnconfigured = errors.New("it needs entries in the configuration")
	// ErrNoState is returned when the state of a network is to be verified that has none.
	ErrNoState = errors.New("there is no state to verify")
	// ErrRange is returned when blocks are to be verified that the network does not have.
	ErrRange = audit.ErrRange
)

// Incomplete reports whether an error of opening a network means that a command must complete
// the network before it can be served.
func Incomplete(err error) bool { return errors.Is(err, ErrNoBlocks) || rows.Incomplete(err) }

// Family is a kind of network. Its methods may be called from many goroutines at once.
//
// A family that stores history sets the format of each of its stores
// (rows.SetFormat) to a text that begins with "ashlar-NAME-". That is how the service
// finds the family of a store.
type Family interface {
	// Name is the family's name in the configuration, on the command line and in
	// ashlar status: lower-case letters and digits.
	Name() string
	// Stores reports whether networks of the family have a store in the data directory.
	// If not, a network exists as soon as the configuration names it, and Begin,
	// Accept, Import, Verify and Rewind are not called.
	Stores() bool

	Configurer
	Opener
	Importer
	Verifier
	Rewinder
	Presenter
}

// Configurer is the part of a [Family] that reads its entries of the configuration.
type Configurer interface {
	// Entries returns the entries of a network that only this family knows, with
	// their defaults, to be filled in.
	Entries() Entries
}

// Implier is a [Configurer] whose family can be told from a network's own entries, where the
// configuration does not name it.
type Implier interface {
	// Implied reports whether a network is of the family. value returns the text of an entry,
	// empty if it is not a text, and whether the network has it.
	Implied(value func(entry string) (text string, ok bool)) bool
}

// Entries are a family's own entries of a network in the configuration: a pointer to
// a struct whose exported fields all have a yaml tag. Their types are those that
// app/config can check: strings, bools, numbers, durations, structs and slices of
// them, and types with an UnmarshalYAML method.
type Entries interface {
	// Check returns what is wrong with the entries themselves, for a network of that name.
	Check(network string) []Problem
	// CheckFiles returns what is wrong with the files that the entries name. They
	// are read again when the network is opened.
	CheckFiles() []Problem
}

// MethodAdder is implemented by [Entries] that add methods to those of the family.
type MethodAdder interface {
	AddedMethods() []string
}

// Cacher is implemented by [Entries] of networks that keep in memory what clients read, besides the store's rows.
type Cacher interface {
	// CacheBytes returns how much memory that takes at most.
	CacheBytes() int64
}

// Listener is implemented by [Entries] of networks that have a listener of their own.
type Listener interface {
	// Listens returns the entry with the address, such as "engine.listen", and the address; empty: none.
	Listens() (entry, address string)
}

// Problem is what is wrong with one entry, or, if Entry is empty, with several together.
type Problem struct {
	Entry string // its name below networks.NAME, such as "source"
	Err   error
}

// Problems returns those that have an error.
func Problems(all ...Problem) []Problem {
	return slices.DeleteFunc(all, func(p Problem) bool { return p.Err == nil })
}

// Place is where a network is kept.
type Place struct {
	Name   string       // the network's name, which is valid
	New    bool         // there is no store yet
	Memory ImportMemory // what an import into it may take
	// Open opens the network's store, or makes one. It refuses the store of another
	// family before anything in it changes, and sets the logger.
	Open func(kv.Options) (kv.Store, error)
}

// Opener is the part of a [Family] that opens networks.
type Opener interface {
	// Begin makes a network that is about to be served, if its entries say with which
	// block it begins. If they do and there is a store already, it must agree with them.
	Begin(ctx context.Context, p Place, e Entries) error
	// Accept refuses a store of the family that this version cannot read. It is asked
	// before anything in the store changes. An empty store is accepted.
	Accept(ctx context.Context, r kv.Reader) error
	// Tables lists the tables of the family's stores, for maintenance.
	Tables() []*kv.Table
	// Open opens a network in its store, which is nil if the family has none. It
	// returns ErrNoBlocks if there is nothing in it to serve. The caller closes the
	// store, after the network. If reading is set, another process writes to the store:
	// the network shows what that process writes, and brings in no blocks itself.
	Open(ctx context.Context, store kv.Store, e Entries, reading bool) (Network, error)
}

// Network is an open network.
type Network interface {
	// Serve prepares the network to answer and returns its methods. It opens the
	// listeners that the network has of its own, and it does not block.
	Serve(ctx context.Context, s Service) (*jsonrpc.Methods, error)
	// Status says what the network holds, and how it stands to what it follows. Name
	// and DiskBytes are left to the caller.
	Status(ctx context.Context) (Status, error)
	// Run does what a network that was prepared by Serve does by itself, such as
	// following nodes, until ctx is done. It returns nil early if there is nothing to
	// do. An error ends the service, so a network that can still be read returns none.
	Run(ctx context.Context) error
	// Close closes the listeners of a network that was not run. It may be called in
	// any state, and more than once.
	Close() error
}

// Versioned is a [Network] that also answers in the forms of some versions of its
// family's specification.
type Versioned interface {
	// Versions returns the methods of each version by its name in paths, such as v0_9. It
	// is called after Serve.
	Versions() (map[string]*jsonrpc.Methods, error)
}

// Families are the families that the service knows. The first is the default for new
// networks.
type Families []Family

// Default returns the family of a new network without a configured family.
func (all Families) Default() Family { return all[0] }

// Named returns the family with a name; the default for no name.
func (all Families) Named(name string) (Family, error) {
	if name == "" {
		return all.Default(), nil
	}
	for _, f := range all {
		if f.Name() == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("unknown family %q (want %s)", name, all)
}

// OfFormat returns the family whose stores have a format.
func (all Families) OfFormat(format string) (Family, bool) {
	for _, f := range all {
		if strings.HasPrefix(format, "ashlar-"+f.Name()+"-") {
			return f, true
		}
	}
	return nil, false
}

// Tables returns the tables of all families. Each has an ID of its own.
func (all Families) Tables() []*kv.Table {
	var tables []*kv.Table
	for _, f := range all {
		tables = append(tables, f.Tables()...)
	}
	return tables
}

// Methods returns the names of the methods of all families, with those of every network.
func (all Families) Methods() ([]string, error) {
	names := []string{openrpc.Discover}
	for _, f := range all {
		some, err := f.Methods()
		if err != nil {
			return nil, fmt.Errorf("methods of family %s: %w", f.Name(), err)
		}
		names = append(names, some...)
	}
	return names, nil
}

// String is the names of the families, as "a, b or c".
func (all Families) String() string {
	var b strings.Builder
	for i, f := range all {
		switch {
		case i > 0 && i == len(all)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(f.Name())
	}
	return b.String()
}
