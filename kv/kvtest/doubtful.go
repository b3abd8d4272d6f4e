package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/kv"
)

// ErrDoubtful is what a write of [Doubtful] returns that may have been applied all the same.
var ErrDoubtful = errors.New("no answer: the write may have been applied")

// Outcome is what a write has done that failed.
type Outcome int

// The outcomes of a write that failed.
const (
	Refused Outcome = iota // nothing
	Begun                  // its rows and removals are applied, its pointers are not
	Applied                // it is applied
	Late                   // it is applied before the next write, and not seen until then
	Outcomes
)

func (o Outcome) String() string { return [...]string{"refused", "begun", "applied", "late"}[o] }

// Doubtful is a store that applies rows and removals first and pointers last, as a cluster does. It fails one write,
// as one to which nodes do not answer in time, and goes on. Later it may end, as if its process was killed. It belongs
// to one goroutine.
type Doubtful struct {
	kv.Store
	Fail    int // the write from now on that fails; 0: none, or it has failed
	How     Outcome
	Further int // pieces of later writes that are applied before the store ends; negative: it does not end

	failed bool
	late   *doubtfulBatch
}

// NewDoubtful returns a store whose writes do not fail.
func NewDoubtful(below kv.Store) *Doubtful { return &Doubtful{Store: below, Further: -1} }

// Piecewise implements kv.Piecewise.
func (d *Doubtful) Piecewise() {}

// Ended reports whether the store has ended: every write returns ErrCrash.
func (d *Doubtful) Ended() bool { return d.failed && d.Further == 0 }

// Write implements kv.Store.
func (d *Doubtful) Write(ctx context.Context, b kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	batch, ok := b.(*doubtfulBatch)
	if !ok {
		return fmt.Errorf("kvtest: Write got a %T of another store", b)
	}
	if d.late != nil {
		late := d.late
		d.late = nil
		if err := d.apply(ctx, late, true); err != nil {
			return err
		}
	}
	if d.Fail--; d.Fail != 0 {
		d.Fail = max(d.Fail, 0)
		return d.apply(ctx, batch, true)
	}
	err := ErrDoubtful
	switch d.How {
	case Begun, Applied:
		err = errors.Join(d.apply(ctx, batch, d.How == Applied), err)
	case Late:
		d.late = &doubtfulBatch{rows: batch.rows, pointers: batch.pointers}
	}
	d.failed = true
	return err
}

// apply applies the rows of a batch, and its pointers if they are wanted.
func (d *Doubtful) apply(ctx context.Context, b *doubtfulBatch, pointers bool) error {
	if err := d.piece(ctx, b.rows); err != nil || !pointers {
		return err
	}
	return d.piece(ctx, b.pointers)
}

// piece applies what a store applies at once.
func (d *Doubtful) piece(ctx context.Context, changes []func(kv.Batch)) error {
	if len(changes) == 0 {
		return nil
	}
	if d.Ended() {
		return ErrCrash
	}
	if d.failed {
		d.Further--
	}
	batch := d.Store.NewBatch()
	for _, change := range changes {
		change(batch)
	}
	return d.Store.Write(ctx, batch)
}

// Drop implements kv.Store.
func (d *Doubtful) Drop(ctx context.Context, t *kv.Table, partition []byte) error {
	if d.Ended() {
		return ErrCrash
	}
	return d.Store.Drop(ctx, t, partition)
}

// NewBatch implements kv.Store.
func (d *Doubtful) NewBatch() kv.Batch { return new(doubtfulBatch) }

// doubtfulBatch is a batch of a Doubtful.
type doubtfulBatch struct {
	rows, pointers []func(kv.Batch)
	bytes          int
}

func (b *doubtfulBatch) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	partition, value = bytes.Clone(partition), bytes.Clone(value)
	b.bytes += len(partition) + len(value)
	b.rows = append(b.rows, func(to kv.Batch) { to.Put(t, partition, sort, value) })
}

func (b *doubtfulBatch) Delete(t *kv.Table, partition []byte, sort uint64) {
	partition = bytes.Clone(partition)
	b.bytes += len(partition)
	b.rows = append(b.rows, func(to kv.Batch) { to.Delete(t, partition, sort) })
}

func (b *doubtfulBatch) DeleteRange(t *kv.Table, partition []byte, from, to uint64) {
	partition = bytes.Clone(partition)
	b.bytes += len(partition)
	b.rows = append(b.rows, func(batch kv.Batch) { batch.DeleteRange(t, partition, from, to) })
}

func (b *doubtfulBatch) SetPointer(name string, value []byte) {
	value = bytes.Clone(value)
	b.bytes += len(name) + len(value)
	b.pointers = append(b.pointers, func(to kv.Batch) { to.SetPointer(name, value) })
}

func (b *doubtfulBatch) Rows() int  { return len(b.rows) + len(b.pointers) }
func (b *doubtfulBatch) Bytes() int { return b.bytes }
func (b *doubtfulBatch) Reset()     { *b = doubtfulBatch{} }
