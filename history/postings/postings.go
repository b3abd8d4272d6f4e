// Package postings is the index by which logs and events are found: for each term
// that one can be asked for, and each block in which the term occurs, a row with
// the positions in that block. A filter is an [Intersection] of unions of terms,
// answered by leaping from row to row in all of them at once.
//
// It knows no family of chain: a family says what its terms are, in which table
// its rows lie, and what is at a position.
package postings

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"ashlar/history/rows"
	"ashlar/kv"
)

// Term names something that a log or event can be asked for.
type Term [12]byte

// MostValueBytes is how long the value of a term can be.
const MostValueBytes = 64

// TermOf is the term of a value of at most MostValueBytes. The kind tells apart
// where it stands: as an address, as the first topic. Two terms can be made to
// collide with much work, so whoever loads what was found compares it with the filter.
func TermOf(kind byte, value []byte) Term {
	var buffer [1 + MostValueBytes]byte
	buffer[0] = kind
	n := copy(buffer[1:], value)
	hash := sha256.Sum256(buffer[:1+n])
	return Term(hash[:12])
}

// Block collects, for every term in a block, the positions at which it occurs,
// encoded as the value of a row: the first position and then the gaps to the
// next, less one, each a uvarint.
type Block struct{ rows map[Term]*row }

type row struct {
	next  uint64 // the least position that can follow
	value []byte
}

// NewBlock makes an empty block.
func NewBlock() *Block { return &Block{rows: make(map[Term]*row)} }

// Add notes that a term occurs at a position. A term's positions are added in
// ascending order; one that was the last already is not added again.
func (b *Block) Add(term Term, position uint64) {
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

// Put puts the rows of the block with a number.
func (b *Block) Put(to kv.Putter, table *kv.Table, number uint64) {
	for term, row := range b.rows {
		to.Put(table, term[:], number, row.value)
	}
}

// Row is the value of a term's row; nil where the term does not occur.
func (b *Block) Row(term Term) []byte {
	if r := b.rows[term]; r != nil {
		return r.value
	}
	return nil
}

// Postings steps through the blocks in which a term occurs, in ascending order.
// It must be closed.
type Postings struct{ kv.Cursor }

// Block is the current block's number.
func (p Postings) Block() uint64 { return p.Sort() }

// Positions appends the term's positions in the current block to dst, in ascending order.
func (p Postings) Positions(dst []uint32) ([]uint32, error) { return DecodePositions(p.Value(), dst) }

// DecodePositions appends the positions in the value of a row to dst, in ascending order.
func DecodePositions(row []byte, dst []uint32) ([]uint32, error) {
	dst = slices.Grow(dst, len(row)) // a position takes a byte or more
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
