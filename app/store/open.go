// Package store opens stores. It is the only package of the service that knows which
// engines there are.
package store

import (
	"ashlar/kv"
	"ashlar/kv/pebble"
)

// engine opens the store in a directory, or makes one there.
type engine func(dir string, o kv.Options) (kv.Store, error)

// engines are the engines by name.
func engines() map[string]engine {
	return map[string]engine{
		"pebble": opener(func(dir string, o kv.Options) (*pebble.Store, error) {
			return pebble.Open(pebble.Options{Path: dir, Options: o})
		}),
	}
}

// current is the engine of every store.
const current = "pebble"

// Open opens the store in a directory, or makes one there.
func Open(dir string, o kv.Options) (kv.Store, error) { return engines()[current](dir, o) }

// opener returns no store where open returns an error, instead of an engine's nil pointer.
func opener[S kv.Store](open func(string, kv.Options) (S, error)) engine {
	return func(dir string, o kv.Options) (kv.Store, error) {
		store, err := open(dir, o)
		if err != nil {
			return nil, err
		}
		return store, nil
	}
}
