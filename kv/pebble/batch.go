package pebble

import (
	"slices"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
)

// maxRetained is the largest buffer that a batch keeps for use again.
const maxRetained = 64 << 20

// batch encodes rows straight into a Pebble batch. What is wrong with a row is
// kept and returned by Write.
type batch struct {
	db      *lsm.DB
	b       *lsm.Batch
	rows    int
	sets    bool   // has pointers
	written []byte // contents, once Pebble has taken b; a bulk load gives it sorted copies instead
	err     error
}

// NewBatch implements kv.Store.
func (s *Store) NewBatch() kv.Batch { return s.newBatch() }

func (s *Store) newBatch() *batch { return &batch{db: s.db, b: newLSMBatch(s.db)} }

func newLSMBatch(db *lsm.DB) *lsm.Batch {
	return db.NewBatch(lsm.WithMaxRetainedSizeBytes(maxRetained))
}

// Put implements kv.Batch.
func (b *batch) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	if err := checkRow(t, partition); err != nil {
		b.fail(err)
		return
	}
	if !b.reopen() {
		return
	}
	op := b.b.SetDeferred(1+len(partition)+1+suffixLen, len(value))
	appendKey(op.Key[:0], t, partition, sort)
	copy(op.Value, value)
	b.finish(op)
}

// SetPointer implements kv.Batch.
func (b *batch) SetPointer(name string, value []byte) {
	if err := checkPointer(name); err != nil {
		b.fail(err)
		return
	}
	if !b.reopen() {
		return
	}
	op := b.b.SetDeferred(1+len(name)+1, len(value))
	appendPointerKey(op.Key[:0], name)
	copy(op.Value, value)
	b.sets = true
	b.finish(op)
}

// Delete implements kv.Batch.
func (b *batch) Delete(t *kv.Table, partition []byte, sort uint64) {
	if err := checkRow(t, partition); err != nil {
		b.fail(err)
		return
	}
	if !b.reopen() {
		return
	}
	op := b.b.DeleteDeferred(1 + len(partition) + 1 + suffixLen)
	appendKey(op.Key[:0], t, partition, sort)
	b.finish(op)
}

// DeleteRange implements kv.Batch.
func (b *batch) DeleteRange(t *kv.Table, partition []byte, from, to uint64) {
	if err := checkRow(t, partition); err != nil {
		b.fail(err)
		return
	}
	if from > to || !b.reopen() {
		return
	}
	if t.Kind == kv.Versions {
		from, to = to, from
	}
	first := appendKey(nil, t, partition, from)
	end := increment(appendKey(nil, t, partition, to), len(first)-suffixLen)
	op := b.b.DeleteRangeDeferred(len(first), len(end))
	copy(op.Key, first)
	copy(op.Value, end)
	b.finish(op)
}

func (b *batch) finish(op *lsm.DeferredBatchOp) {
	if err := op.Finish(); err != nil {
		b.fail(err)
		return
	}
	b.rows++
}

func (b *batch) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// reopen makes a batch that was written before into one that can be extended and
// written again: Pebble takes a batch only once and may keep its memory.
func (b *batch) reopen() bool {
	if b.written == nil {
		return true
	}
	again := newLSMBatch(b.db)
	if err := again.SetRepr(slices.Clone(b.written)); err != nil {
		b.fail(err)
		return false
	}
	b.b, b.written = again, nil
	return true
}

// Rows implements kv.Batch.
func (b *batch) Rows() int { return b.rows }

// Bytes implements kv.Batch.
func (b *batch) Bytes() int {
	if b.written != nil {
		return len(b.written)
	}
	return b.b.Len()
}

// Reset implements kv.Batch.
func (b *batch) Reset() {
	b.b.Reset()
	b.rows, b.sets, b.written, b.err = 0, false, nil, nil
}
