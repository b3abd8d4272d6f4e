package cassandra

import (
	"slices"

	"ashlar/kv"
)

// row is a row of a batch.
type row struct {
	table     *kv.Table
	partition []byte
	sort      uint64
	value     []byte
}

// rowOverhead is about what a row takes besides its partition and value.
const rowOverhead = 16

func (r *row) size() int64 { return int64(len(r.partition) + len(r.value) + rowOverhead) }

// removal is a range of rows to remove.
type removal struct {
	table     *kv.Table
	partition []byte
	from, to  uint64
}

// pointer is a new value of a pointer.
type pointer struct {
	name  string
	value []byte
}

// batch implements kv.Batch. What is wrong with a row is kept and returned by Write.
type batch struct {
	store    *Store
	rows     []row
	removals []removal
	pointers []pointer
	memory   []byte // partitions and values
	size     int
	err      error
}

// NewBatch implements kv.Store.
func (s *Store) NewBatch() kv.Batch { return &batch{store: s} }

// Put implements kv.Putter.
func (b *batch) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	if err := checkRow(t, partition); err != nil {
		b.fail(err)
		return
	}
	r := row{t, b.keep(partition), sort, b.keep(value)}
	b.rows = append(b.rows, r)
	b.size += int(r.size())
}

// Delete implements kv.Batch.
func (b *batch) Delete(t *kv.Table, partition []byte, sort uint64) {
	b.DeleteRange(t, partition, sort, sort)
}

// DeleteRange implements kv.Batch.
func (b *batch) DeleteRange(t *kv.Table, partition []byte, from, to uint64) {
	if err := checkRow(t, partition); err != nil {
		b.fail(err)
		return
	}
	if from > to {
		return
	}
	b.removals = append(b.removals, removal{t, b.keep(partition), from, to})
	b.size += len(partition) + rowOverhead
}

// SetPointer implements kv.Batch.
func (b *batch) SetPointer(name string, value []byte) {
	if err := checkPointer(name); err != nil {
		b.fail(err)
		return
	}
	b.pointers = append(b.pointers, pointer{name, b.keep(value)})
	b.size += len(name) + len(value)
}

// keep copies data. The copy stays valid when memory grows. It is not nil.
func (b *batch) keep(data []byte) []byte {
	start := len(b.memory)
	b.memory = append(slices.Grow(b.memory, max(len(data), 1)), data...)
	return b.memory[start:len(b.memory):len(b.memory)]
}

func (b *batch) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Rows implements kv.Batch.
func (b *batch) Rows() int { return len(b.rows) + len(b.removals) + len(b.pointers) }

// Bytes implements kv.Batch.
func (b *batch) Bytes() int { return b.size }

// Reset implements kv.Batch. The memory is not used again: when Write returns, the driver may be
// about to send the same rows to another node, because the first was slow.
func (b *batch) Reset() {
	clear(b.rows)
	clear(b.removals)
	clear(b.pointers)
	b.rows, b.removals, b.pointers, b.memory = b.rows[:0], b.removals[:0], b.pointers[:0], nil
	b.size, b.err = 0, nil
}
