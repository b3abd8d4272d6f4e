package kvtest

import (
	"context"
	"errors"

	"ashlar/kv"
)

// ErrCrash is what a write of [Piecewise] returns in which the process crashes.
var ErrCrash = errors.New("crash between rows and pointers")

// Piecewise is a store that applies rows and removals first and pointers last. If Crash is
// set, a write of both ends in between.
type Piecewise struct {
	kv.Store
	Crash bool
}

// Piecewise implements kv.Piecewise.
func (p *Piecewise) Piecewise() {}

// NewBatch implements kv.Store.
func (p *Piecewise) NewBatch() kv.Batch {
	return &piecewiseBatch{Batch: p.Store.NewBatch(), pointers: p.Store.NewBatch()}
}

// Write implements kv.Store.
func (p *Piecewise) Write(ctx context.Context, b kv.Batch) error {
	pieces := b.(*piecewiseBatch)
	if err := p.Store.Write(ctx, pieces.Batch); err != nil {
		return err
	}
	if p.Crash && pieces.Batch.Rows() > 0 && pieces.pointers.Rows() > 0 {
		return ErrCrash
	}
	return p.Store.Write(ctx, pieces.pointers)
}

// piecewiseBatch keeps pointers apart from rows.
type piecewiseBatch struct {
	kv.Batch
	pointers kv.Batch
}

func (b *piecewiseBatch) SetPointer(name string, value []byte) { b.pointers.SetPointer(name, value) }
func (b *piecewiseBatch) Rows() int                            { return b.Batch.Rows() + b.pointers.Rows() }
func (b *piecewiseBatch) Bytes() int                           { return b.Batch.Bytes() + b.pointers.Bytes() }

func (b *piecewiseBatch) Reset() {
	b.Batch.Reset()
	b.pointers.Reset()
}
