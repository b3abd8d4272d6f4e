package proven

import (
	"context"
	"iter"

	"ashlar/kv"
)

// forgetful is the store of a tip that stays in memory: it accepts what is written and has
// nothing. Methods that a tip does not call are missing.
type forgetful struct{ kv.Store }

// Pointer implements [kv.Reader].
func (forgetful) Pointer(context.Context, string) ([]byte, error) { return nil, kv.ErrNotFound }

// Walk implements [kv.Store].
func (forgetful) Walk(context.Context, *kv.Table, uint64) iter.Seq2[kv.Row, error] {
	return func(func(kv.Row, error) bool) {}
}

// NewBatch implements [kv.Store].
func (forgetful) NewBatch() kv.Batch { return discarded{} }

// Write implements [kv.Store].
func (forgetful) Write(context.Context, kv.Batch) error { return nil }

// Sync implements [kv.Store].
func (forgetful) Sync(context.Context) error { return nil }

// Drop implements [kv.Store].
func (forgetful) Drop(context.Context, *kv.Table, []byte) error { return nil }

// discarded implements [kv.Batch].
type discarded struct{}

func (discarded) Put(*kv.Table, []byte, uint64, []byte)         {}
func (discarded) Delete(*kv.Table, []byte, uint64)              {}
func (discarded) DeleteRange(*kv.Table, []byte, uint64, uint64) {}
func (discarded) SetPointer(string, []byte)                     {}
func (discarded) Rows() int                                     { return 0 }
func (discarded) Bytes() int                                    { return 0 }
func (discarded) Reset()                                        {}
