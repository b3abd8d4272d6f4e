// Package postings is the index of logs and events. For each term and each block in which
// it occurs there is a row with the term's positions in the block. A filter is an
// [Intersection] of unions of terms. It is evaluated by leapfrogging: all cursors skip to
// the next block that is still possible.
//
// The package knows no chain family. A family defines its terms, the table of its rows and
// the meaning of a position.
package postings

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"ashlar/history/rows"
	"ashlar/kv"
)

// Term is a searchable property of a log or event, such as an address or a topic.
type Term [12]byte

// MaxValueBytes is the maximum length of a term's value.
const MaxValueBytes = 64

// TermOf returns the term of a value of at most MaxValueBytes. The kind says what the
// value is, such as an address or the first topic. Terms are hashes for which collisions
// can be constructed with much work, so callers must compare what they load with the filter.
func TermOf(kind byte, value []byte) Term {
	var buffer [1 + MaxValueBytes]byte
	buffer[0] = kind
	n := copy(buffer[1:], value)
	hash := sha256.Sum256(buffer[:1+n])
	return Term(hash[:12])
}

// Block collects the positions of every term in a block, encoded as the value of a row: the
// first position, then for each further one its distance from its predecessor minus one,
// all as uvarints. T is [Term], or what a family uses in its place.
type Block[T comparable] struct{ rows map[T]*row }

type row struct {
	next  uint64 // the least position that may be added
	value []byte
}

// NewBlock makes an empty block.
func NewBlock[T comparable]() *Block[T] { return &Block[T]{rows: make(map[T]*row)} }

// Add records that a term occurs at a position. The positions of a term must be added in
// ascending order. Adding a term's last position again has no effect.
func (b *Block[T]) Add(term T, position uint64) {
	r := b.rows[term]
	if r == nil {
		r = new(row)
		b.rows[term] = r
	}
	if position < r.next {
		return
	}
	r.value = binary.AppendUvarint(r.value, position-r.next)
	r.next = position + 1
}

// Rows yields the terms of the block, each with the value of its row, in any order.
func (b *Block[T]) Rows() iter.Seq2[T, []byte] {
	return func(yield func(T, []byte) bool) {
		for term, row := range b.rows {
			if !yield(term, row.value) {
				return
			}
		}
	}
}

// Postings iterates over the blocks in which a term occurs, in ascending order. It must be
// closed.
type Postings struct{ kv.Cursor }

// Block returns the number of the current block.
func (p Postings) Block() uint64 { return p.Sort() }

// Positions appends the term's positions in the current block to dst, in ascending order.
func (p Postings) Positions(dst []uint32) ([]uint32, error) { return DecodePositions(p.Value(), dst) }

// DecodePositions appends the positions in a row's value to dst, in ascending order.
func DecodePositions(row []byte, dst []uint32) ([]uint32, error) {
	dst = slices.Grow(dst, len(row)) // a position takes at least a byte
	var next uint64
	for len(row) > 0 {
		gap, n := binary.Uvarint(row)
		if n <= 0 || next+gap < next || next+gap > 1<<32-2 {
			return dst, fmt.Errorf("%w: a row of postings does not decode", rows.ErrCorrupt)
		}
		dst = append(dst, uint32(next+gap))
		next += gap + 1
		row = row[n:]
	}
	return dst, nil
}
