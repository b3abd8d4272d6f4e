// Package packed holds rows in memory by their keys, without pointers: the garbage collector has
// nothing to follow in them, and they take little more memory than their own bytes. A map of Go
// takes about twice as much for the same rows.
package packed

import (
	"encoding/binary"
	"iter"
	"math"
)

// Rows are rows with different keys, up to a number of bytes. A look-up touches two places in
// memory: one of the index and one of the rows. Callers give the hash of each key, the same one
// each time, of which all bits count. Nothing is removed before [Rows.Clear]. The zero value has
// room for nothing. Rows are not safe for concurrent use.
//
// A row is
//
//	since uint64 | length of key uint16 | of value uint16 | room for value uint16 | key | value, room
//
// in the byte order of [binary.NativeEndian]. The block that wrote it, since, is the caller's.
type Rows struct {
	// index has the positions of rows by the upper half of their keys' hashes, which is its
	// upper half; the lower half is the position of the row plus 1, and 0 in a free place.
	// A key is at the place that its hash has among all hashes, or at the next one that was free.
	index  []uint64
	places int // length of the index once there is a row; 0 if there is no room for any
	count  int // of rows and of places of the index that are taken
	rows   []byte
	limit  int   // of rows, in bytes
	within int64 // bytes of both, as given to Within
}

const (
	// Where the lengths of a row are in it, after since.
	keyLength   = 8
	valueLength = keyLength + 2
	roomLength  = valueLength + 2

	// HeaderBytes is what a row takes besides its key, its value and its place of the index.
	HeaderBytes = roomLength + 2

	// indexShare is how much of the memory the index takes: with the rows of slots, whose keys
	// have 65 bytes, half of its places are taken when the rows are full.
	indexShare = 8
	placeBytes = 8
	// maxBytes is what rows and index take at most: positions in the rows have 32 bits.
	maxBytes  = (math.MaxUint32 - 1) / (indexShare - 1) * indexShare
	firstRows = 4 << 10 // bytes of rows that are allocated at first
)

// Within returns no rows yet, and takes at most the given bytes for them, and never more than some
// 4.5 GiB. It allocates them when they are needed.
func Within(bytes int64) Rows {
	used := min(bytes, maxBytes)
	index := used / indexShare
	return Rows{limit: int(used - index), places: int(index / placeBytes), within: bytes}
}

// Share returns how many of the bytes given to [Within] a row takes at most: rows whose shares are
// no more than these have room.
func Share(key, value []byte) int64 {
	row := int64(HeaderBytes + len(key) + len(value))
	return max(row*indexShare/(indexShare-1), placeBytes*indexShare*4/3) + 1
}

// Row is one of some rows. It is valid until these change.
type Row struct {
	of       *Rows
	position int // in of.rows; -1: there is none
}

// Exists reports whether there is such a row. The other methods need one.
func (r Row) Exists() bool { return r.position >= 0 }

// Since returns the block that wrote the row.
func (r Row) Since() uint64 { return binary.NativeEndian.Uint64(r.of.rows[r.position:]) }

// length returns one of the lengths of the row: that at keyLength, valueLength or roomLength.
func (r Row) length(at int) int {
	return int(binary.NativeEndian.Uint16(r.of.rows[r.position+at:]))
}

// bytes returns how many bytes the row takes, without its place of the index.
func (r Row) bytes() int { return HeaderBytes + r.length(keyLength) + r.length(roomLength) }

// Key returns the key. The caller must not change it.
func (r Row) Key() []byte {
	from := r.position + HeaderBytes
	return r.of.rows[from : from+r.length(keyLength)]
}

// Value returns the value, which the caller must not change. Its capacity is the room that the row
// has for one.
func (r Row) Value() []byte {
	from := r.position + HeaderBytes + r.length(keyLength)
	return r.of.rows[from : from+r.length(valueLength) : from+r.length(roomLength)]
}

// Replace gives the row another version, and reports whether there is room for it.
func (r Row) Replace(since uint64, value []byte) bool {
	room := r.Value()
	if len(value) > cap(room) {
		return false
	}
	copy(room[:cap(room)], value)
	binary.NativeEndian.PutUint64(r.of.rows[r.position:], since)
	binary.NativeEndian.PutUint16(r.of.rows[r.position+valueLength:], uint16(len(value)))
	return true
}

// Find returns the row of a key, if it exists.
func (r *Rows) Find(hash uint64, key []byte) Row {
	found, _ := r.find(hash, key)
	return found
}

// find also returns the place of the index that has the row, or where it would be.
func (r *Rows) find(hash uint64, key []byte) (found Row, place int) {
	if len(r.index) == 0 {
		return Row{r, -1}, 0
	}
	for place = int(hash >> 32 * uint64(len(r.index)) >> 32); ; place++ {
		if place == len(r.index) {
			place = 0
		}
		at := r.index[place]
		if at == 0 {
			return Row{r, -1}, place
		}
		if at>>32 != hash>>32 {
			continue
		}
		if found = (Row{r, int(uint32(at)) - 1}); string(found.Key()) == string(key) {
			return found, place
		}
	}
}

// Len returns how many rows there are.
func (r *Rows) Len() int { return r.count }

// Limit returns how many bytes the rows may take.
func (r *Rows) Limit() int64 { return r.within }

// Bytes returns the memory that is allocated.
func (r *Rows) Bytes() int { return cap(r.rows) + placeBytes*len(r.index) }

// Fits reports whether a row can be one of these, if there are no others.
func (r *Rows) Fits(key, value []byte) bool {
	return HeaderBytes+len(key)+len(value) <= r.limit && r.places >= 2 && len(key) < 1<<16 && len(value) < 1<<16
}

// Put adds a row or replaces it, and reports whether there was room for it. The row must fit
// ([Rows.Fits]).
func (r *Rows) Put(hash uint64, key []byte, since uint64, value []byte) bool {
	found, place := r.find(hash, key)
	if found.Exists() && found.Replace(since, value) {
		return true
	}
	need := HeaderBytes + len(key) + len(value)
	switch {
	case len(r.rows)+need > r.limit || r.places < 2: // one place of the index stays free
		return false
	case found.Exists(): // its place will name the longer row
	case r.index == nil:
		r.index = make([]uint64, r.places)
		_, place = r.find(hash, key)
		r.count++
	case 4*(r.count+1) > 3*len(r.index):
		return false
	default:
		r.count++
	}
	r.grow(need)
	r.index[place] = hash>>32<<32 | uint64(len(r.rows)+1)
	r.rows = binary.NativeEndian.AppendUint64(r.rows, since)
	for _, length := range []int{len(key), len(value), len(value)} {
		r.rows = binary.NativeEndian.AppendUint16(r.rows, uint16(length))
	}
	r.rows = append(append(r.rows, key...), value...)
	return true
}

// grow makes room for more bytes of rows. Unlike append it never allocates more than the limit.
func (r *Rows) grow(bytes int) {
	if len(r.rows)+bytes <= cap(r.rows) {
		return
	}
	grown := make([]byte, len(r.rows), min(max(firstRows, 2*cap(r.rows), len(r.rows)+bytes), r.limit))
	copy(grown, r.rows)
	r.rows = grown
}

// All yields the rows in the order in which they were added. One that was replaced by a longer one
// comes twice, the newer version later. The rows must not change meanwhile.
func (r *Rows) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for at := 0; at < len(r.rows); {
			row := Row{r, at}
			if !yield(row) {
				return
			}
			at += row.bytes()
		}
	}
}

// Clear removes all rows, and keeps the memory.
func (r *Rows) Clear() {
	clear(r.index)
	r.rows, r.count = r.rows[:0], 0
}
