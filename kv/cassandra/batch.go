package cassandra

import "ashlar/kv"

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
	memory   []byte // the chunk that the next partitions and values go to
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

const (
	firstChunk = 128 // bytes; many batches have one pointer
	lastChunk  = 256 << 10
)

// keep copies data to memory. What does not fit there goes to a new chunk, twice as large up to lastChunk, or, if it is
// large, to memory of its own. So nothing is copied again, and no chunk is left with most of its room unused. The
// copy is not nil.
func (b *batch) keep(data []byte) []byte {
	if len(data) > lastChunk/8 {
		return copied(data)
	}
	if room := cap(b.memory) - len(b.memory); room < max(len(data), 1) {
		b.memory = make([]byte, 0, max(firstChunk, min(2*cap(b.memory), lastChunk), len(data)))
	}
	start := len(b.memory)
	b.memory = append(b.memory, data...)
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

// Reset implements kv.Batch. Memory that has rows is not used again, only the room behind them: when Write returns,
// the driver may be about to send the same rows to another node, because the first was slow.
func (b *batch) Reset() {
	clear(b.rows)
	clear(b.removals)
	clear(b.pointers)
	b.rows, b.removals, b.pointers = b.rows[:0], b.removals[:0], b.pointers[:0]
	b.size, b.err = 0, nil
}
