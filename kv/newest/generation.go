package newest

import (
	"encoding/binary"
	"math/bits"
)

// generation holds rows by their key. It has no pointers to rows, so that the garbage
// collector has nothing to follow in it, and a look-up touches two places in memory: one of
// the index and one of the rows. Nothing is removed from it before [generation.clear].
//
// A row is
//
//	since uint64 | length of key uint16 | of value uint16 | room for value uint16 | key | value, room
//
// in the byte order of [binary.NativeEndian].
type generation struct {
	// index has the positions of rows by the upper half of their keys' hashes, which is its
	// upper half; the lower half is the position of the row plus 1, and 0 in a free place.
	// A key is at the place of its hash modulo the length, or at the next one that was free.
	index  []uint64
	places int // length of the index once there is a row; 0 if there is no room for any
	count  int // of rows and of places of the index that are taken
	rows   []byte
	limit  int // of rows, in bytes
}

const (
	// Where the lengths of a row are in it, after since.
	keyLength   = 8
	valueLength = keyLength + 2
	roomLength  = valueLength + 2
	headerBytes = roomLength + 2

	// indexShare is how much of a generation's memory is its index: with the rows of slots,
	// whose keys have 65 bytes, half of its places are taken when the rows are full.
	indexShare = 8
	placeBytes = 8
	firstRows  = 4 << 10 // bytes of rows that are allocated at first
)

// newGeneration returns a generation that takes at most the given bytes. It allocates them when
// they are needed.
func newGeneration(bytes int64) generation {
	g := generation{limit: int(bytes - bytes/indexShare)}
	if most := uint64(bytes / indexShare / placeBytes); most >= 2 {
		g.places = 1 << (bits.Len64(most) - 1) // the greatest power of two
	}
	return g
}

// stored is a row of a generation. It is valid until the next change of it.
type stored struct {
	g        *generation
	position int // in g.rows; -1: there is none
}

func (r stored) exists() bool { return r.position >= 0 }

func (r stored) since() uint64 { return binary.NativeEndian.Uint64(r.g.rows[r.position:]) }

// length returns one of the lengths of the row: that at keyLength, valueLength or roomLength.
func (r stored) length(at int) int {
	return int(binary.NativeEndian.Uint16(r.g.rows[r.position+at:]))
}

func (r stored) key() []byte {
	from := r.position + headerBytes
	return r.g.rows[from : from+r.length(keyLength)]
}

// value returns the value. Its capacity is the room that the row has for one.
func (r stored) value() []byte {
	from := r.position + headerBytes + r.length(keyLength)
	return r.g.rows[from : from+r.length(valueLength) : from+r.length(roomLength)]
}

// replace gives the row another version, and reports whether there is room for it.
func (r stored) replace(since uint64, value []byte) bool {
	room := r.value()
	if len(value) > cap(room) {
		return false
	}
	copy(room[:cap(room)], value)
	binary.NativeEndian.PutUint64(r.g.rows[r.position:], since)
	binary.NativeEndian.PutUint16(r.g.rows[r.position+valueLength:], uint16(len(value)))
	return true
}

// find returns the row of a key, and the place of the index that has it, or where it would be.
func (g *generation) find(hash uint64, key []byte) (r stored, place int) {
	if len(g.index) == 0 {
		return stored{g, -1}, 0
	}
	mask := len(g.index) - 1
	for place = int(hash>>32) & mask; ; place = (place + 1) & mask {
		at := g.index[place]
		if at == 0 {
			return stored{g, -1}, place
		}
		if at>>32 != hash>>32 {
			continue
		}
		if r = (stored{g, int(uint32(at)) - 1}); string(r.key()) == string(key) {
			return r, place
		}
	}
}

// fits reports whether a row can be in an empty generation.
func (g *generation) fits(key, value []byte) bool {
	return headerBytes+len(key)+len(value) <= g.limit && g.places > 0 && len(value) < 1<<16
}

// put adds a row or replaces it, and reports whether there was room for it. The row must fit
// into an empty generation.
func (g *generation) put(hash uint64, key []byte, since uint64, value []byte) bool {
	r, place := g.find(hash, key)
	if r.exists() && r.replace(since, value) {
		return true
	}
	need := headerBytes + len(key) + len(value)
	if len(g.rows)+need > g.limit {
		return false
	}
	switch {
	case r.exists(): // its place will name the longer row
	case g.index == nil:
		g.index = make([]uint64, g.places)
		_, place = g.find(hash, key)
		g.count++
	case 4*(g.count+1) > 3*len(g.index):
		return false
	default:
		g.count++
	}
	g.grow(need)
	g.index[place] = hash>>32<<32 | uint64(len(g.rows)+1)
	g.rows = binary.NativeEndian.AppendUint64(g.rows, since)
	for _, length := range []int{len(key), len(value), len(value)} {
		g.rows = binary.NativeEndian.AppendUint16(g.rows, uint16(length))
	}
	g.rows = append(append(g.rows, key...), value...)
	return true
}

// grow makes room for more bytes of rows. Unlike append it never allocates more than the limit.
func (g *generation) grow(bytes int) {
	if len(g.rows)+bytes <= cap(g.rows) {
		return
	}
	grown := make([]byte, len(g.rows), min(max(firstRows, 2*cap(g.rows), len(g.rows)+bytes), g.limit))
	copy(grown, g.rows)
	g.rows = grown
}

// clear removes all rows, and keeps the memory.
func (g *generation) clear() {
	clear(g.index)
	g.rows, g.count = g.rows[:0], 0
}
