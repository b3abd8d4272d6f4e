package pebble_test

import (
	"testing"

	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/pebble"
)

// modes are the ways in which a store can be opened that change how it works.
func modes() map[string]pebble.Options {
	small := int64(256 << 10) // so that small tests flush and compact
	return map[string]pebble.Options{
		"Log":           {},
		"LogSmall":      {Options: kv.Options{BufferBytes: small, CacheBytes: 1 << 20}},
		"BulkLoad":      {Options: kv.Options{BulkLoad: true}},
		"BulkLoadSmall": {Options: kv.Options{BulkLoad: true, BufferBytes: small, CacheBytes: 1 << 20, Tables: []*kv.Table{{ID: 0xfe, Apart: true}}}},
	}
}

func open(t testing.TB, o pebble.Options) *pebble.Store {
	t.Helper()
	s, err := pebble.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The stores are on the disk. Pebble's file system in memory, which no store of the program has, is for tests of
// crashes and of disks that fail.

func TestContract(t *testing.T) {
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			kvtest.Run(t, kvtest.Operations, func(t *testing.T) kv.Store {
				o.Path = t.TempDir()
				return open(t, o)
			})
		})
	}
}

func TestReopen(t *testing.T) {
	raced.Skip(t)
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			kvtest.RunReopen(t, func(t *testing.T) func(t *testing.T) kv.Store {
				o.Path = t.TempDir()
				return func(t *testing.T) kv.Store { return open(t, o) }
			})
		})
	}
}
