package kvtest

import (
	"context"
	"errors"
	"iter"

	"ashlar/kv"
)

// ErrBroken is what the operation of a [Failing] returns that fails.
var ErrBroken = errors.New("the disk is broken")

// Failing is a store of which one operation fails, and all others succeed. A write that fails is not
// applied. Tests have one operation after the other fail, until none is left:
//
//	for n := 0; ; n++ {
//		store := &kvtest.Failing{Store: below, Left: n}
//		err := change(store)
//		if store.Left >= 0 {
//			break // all operations have succeeded
//		}
//		// err must be ErrBroken
//	}
//
// It belongs to one goroutine.
type Failing struct {
	kv.Store
	Left     int   // operations before the one that fails; negative: it has failed, or none is to
	Writes   []int // bytes of each batch that was written
	Unsynced int   // writes since the last Sync
}

// Operation counts an operation, and returns ErrBroken if it is the one that fails. Tests call it in
// place of what is no operation of a store.
func (f *Failing) Operation() error {
	f.Left--
	if f.Left == -1 {
		return ErrBroken
	}
	return nil
}

// Write implements kv.Store.
func (f *Failing) Write(ctx context.Context, batch kv.Batch) error {
	if err := f.Operation(); err != nil {
		return err
	}
	f.Writes = append(f.Writes, batch.Bytes())
	f.Unsynced++
	return f.Store.Write(ctx, batch)
}

// Sync implements kv.Store.
func (f *Failing) Sync(ctx context.Context) error {
	if err := f.Operation(); err != nil {
		return err
	}
	f.Unsynced = 0
	return f.Store.Sync(ctx)
}

// CompareAndSet implements kv.Store.
func (f *Failing) CompareAndSet(ctx context.Context, name string, old, value []byte) error {
	if err := f.Operation(); err != nil {
		return err
	}
	return f.Store.CompareAndSet(ctx, name, old, value)
}

// Drop implements kv.Store.
func (f *Failing) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	if err := f.Operation(); err != nil {
		return err
	}
	return f.Store.Drop(ctx, t, partition)
}

// Pointer implements kv.Store.
func (f *Failing) Pointer(ctx context.Context, name string) ([]byte, error) {
	if err := f.Operation(); err != nil {
		return nil, err
	}
	return f.Store.Pointer(ctx, name)
}

// Get implements kv.Reader.
func (f *Failing) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	if err := f.Operation(); err != nil {
		return dst, err
	}
	return f.Store.Get(ctx, t, partition, sort, dst)
}

// Newest implements kv.Reader.
func (f *Failing) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if err := f.Operation(); err != nil {
		return dst, 0, err
	}
	return f.Store.Newest(ctx, t, partition, at, dst)
}

// NewestMany implements kv.Reader.
func (f *Failing) NewestMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, sort uint64, value []byte) error) error {
	if err := f.Operation(); err != nil {
		return err
	}
	return f.Store.NewestMany(ctx, t, keys, found)
}

// Descend implements kv.Reader.
func (f *Failing) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	if err := f.Operation(); err != nil {
		return err
	}
	return f.Store.Descend(ctx, t, partition, at, found)
}

// Scan implements kv.Reader. If it fails, the cursor says so.
func (f *Failing) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	below := kv.Reader(f.Store)
	if err := f.Operation(); err != nil {
		below = FailAfter(below, 0, err)
	}
	return below.Scan(ctx, t, partition, from, to)
}

// Walk implements kv.Store.
func (f *Failing) Walk(ctx context.Context, t *kv.Table, from uint64) iter.Seq2[kv.Row, error] {
	if err := f.Operation(); err != nil {
		return func(yield func(kv.Row, error) bool) { yield(kv.Row{}, err) }
	}
	return f.Store.Walk(ctx, t, from)
}
