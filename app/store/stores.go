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
	// Close closes what the stores share. They must have been closed before.
	Close() error
}

var (
	_ Stores = Dir("")
	_ Stores = (*Keyspace)(nil)
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
