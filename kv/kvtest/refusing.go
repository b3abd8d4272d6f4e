package kvtest

import (
	"context"
	"errors"
	"sync/atomic"

	"ashlar/kv"
)

// ErrRefused is what a refused write of [Refusing] returns.
var ErrRefused = errors.New("the write is refused")

// Refusing is a store that refuses the writes that set one pointer, and no others, while Refuse is set.
type Refusing struct {
	kv.Store
	Name   string // of the pointer
	Refuse atomic.Bool
}

// refusingBatch is a batch of a Refusing.
type refusingBatch struct {
	kv.Batch
	pointer string
	sets    bool // it sets the pointer
}

// NewBatch implements kv.Store.
func (r *Refusing) NewBatch() kv.Batch {
	return &refusingBatch{Batch: r.Store.NewBatch(), pointer: r.Name}
}

// Write implements kv.Store.
func (r *Refusing) Write(ctx context.Context, b kv.Batch) error {
	batch := b.(*refusingBatch)
	if batch.sets && r.Refuse.Load() {
		return ErrRefused
	}
	return r.Store.Write(ctx, batch.Batch)
}

func (b *refusingBatch) SetPointer(name string, value []byte) {
	b.sets = b.sets || name == b.pointer
	b.Batch.SetPointer(name, value)
}

func (b *refusingBatch) Reset() {
	b.sets = false
	b.Batch.Reset()
}
