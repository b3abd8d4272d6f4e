// Package store says where the stores of a service are, and opens them. No other package of
// the service imports an engine.
//
// [Stores] are one store for the accounts and one for each network, in one of two places:
//
//	[Dir]       a data directory, with a store of the embedded engine in each folder
//	[Keyspace]  a keyspace of a Cassandra cluster, which several processes share
//
// Backups, restores and copies collect a store under another name, and give it its own when
// it is whole. So a store that has a name is whole, whenever a process is killed. What is in
// a store is for the families and package account.
package store

import (
	"io"

	"ashlar/kv"
	"ashlar/kv/pebble"
)

// engine opens or creates the store in a directory.
type engine func(dir string, o kv.Options) (kv.Store, error)

// engines returns the engines by name.
func engines() map[string]engine {
	return map[string]engine{
		"pebble": opener(func(dir string, o kv.Options) (*pebble.Store, error) {
			return pebble.Open(pebble.Options{Path: dir, Options: o})
		}),
	}
}

// current is the engine of every store.
const current = "pebble"

// Open opens or creates the store in a directory.
func Open(dir string, o kv.Options) (kv.Store, error) { return engines()[current](canonical(dir), o) }

// opener adapts open to return a nil interface on errors, not an engine's nil pointer.
func opener[S kv.Store](open func(string, kv.Options) (S, error)) engine {
	return func(dir string, o kv.Options) (kv.Store, error) {
		store, err := open(dir, o)
		if err != nil {
			return nil, err
		}
		return store, nil
	}
}

// copiesFolder is the name of the folder in the directory of a store in which its checkpoints are.
const copiesFolder = pebble.CheckpointFolder

// lockStore takes the exclusive right to the store in a directory without opening it.
func lockStore(dir string) (io.Closer, error) { return pebble.Lock(canonical(dir)) }

// lockToReplace is lockStore for a store that is removed or replaced. The error is a kv.ErrCheckpoint while it is being copied.
func lockToReplace(dir string) (io.Closer, error) { return pebble.LockToReplace(canonical(dir)) }
