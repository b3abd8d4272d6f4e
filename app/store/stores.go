package store

import (
	"context"
	"fmt"

	"ashlar/kv"
	"ashlar/typo"
)

// Stores are the stores of one service: one for the accounts, and one for each network. They
// are in a data directory ([Dir]) or in a keyspace of a cluster ([Keyspace]).
type Stores interface {
	fmt.Stringer
	// Exists reports whether a network has a store.
	Exists(ctx context.Context, network string) (bool, error)
	// List lists the networks that have a store.
	List(ctx context.Context) ([]string, error)
	// OpenAccounts opens or creates the store of the accounts.
	OpenAccounts(accept func(kv.Reader) error) (kv.Store, error)
	// OpenNetwork opens or creates the store of a network.
	OpenNetwork(name string, o kv.Options) (kv.Store, error)

	// ListStores lists the stores of the service by their names in backups.
	ListStores(ctx context.Context) ([]string, error)
	// OpenToCopy opens a store to be read, by its name in backups. Nothing writes to it
	// meanwhile, except to the accounts in a keyspace.
	OpenToCopy(ctx context.Context, name string) (kv.Store, error)
	// OpenCopy opens or makes the store in which a copy is collected. It is not served until
	// Publish gives it the name of a store that does not exist. Discard removes it. tables
	// are those of the original.
	OpenCopy(ctx context.Context, name string, tables []*kv.Table) (kv.Store, error)
	Publish(ctx context.Context, name string) error
	Discard(ctx context.Context, name string) error

	// Close closes what the stores share. They must have been closed before.
	Close() error
}

var (
	_ Stores = Dir("")
	_ Stores = (*Keyspace)(nil)
)

// copyCache and copyBuffer are for stores that are read or written once, sequentially.
const (
	copyCache  = 64 << 20
	copyBuffer = 64 << 20
)

// NotFound returns the error for a network that has no store.
func NotFound(ctx context.Context, s Stores, network string) error {
	names, err := s.List(ctx)
	if err != nil {
		return err
	}
	if meant := typo.Meant(names, network); meant != "" {
		return fmt.Errorf("not found in %s; did you mean %s?", s, meant)
	}
	return fmt.Errorf("not found in %s; import it first", s)
}

// String returns the path of the directory.
func (d Dir) String() string { return string(d) }

// Exists implements [Stores].
func (d Dir) Exists(_ context.Context, network string) (bool, error) { return d.Has(network), nil }

// List implements [Stores].
func (d Dir) List(context.Context) ([]string, error) { return d.Names() }

// Close implements [Stores].
func (d Dir) Close() error { return nil }
