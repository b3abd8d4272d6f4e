package tip

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
)

// row is one row of a block.
type row struct {
	key   []byte // table ID, partition
	sort  uint64
	value []byte
}

// layer finds rows by table and partition. It is immutable.
type layer struct {
	rows []row // sorted by key and sort
	// places is an open-addressing hash table. It holds one plus the index in rows of the
	// first row with a key, 0 for an empty slot. A Go map finds rows in the same time, but
	// takes 54 bytes more per row, and builds a layer of 4,000 rows in 2.1 ms instead of
	// 1.6 ms.
	places []uint32
}

// seed randomizes hashes per process.
var seed = maphash.MakeSeed()

func hashKey(key []byte) uint64 { return maphash.Bytes(seed, key) }

// newLayer takes ownership of rows. Duplicates are removed.
func newLayer(rows []row) *layer {
	slices.SortFunc(rows, func(a, b row) int {
		if c := bytes.Compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.sort, b.sort)
	})
	rows = slices.CompactFunc(rows, func(a, b row) bool { return a.sort == b.sort && bytes.Equal(a.key, b.key) })
	size := 2
	for size < 2*len(rows) {
		size *= 2
	}
	l := &layer{rows: rows, places: make([]uint32, size)}
	for i := range rows {
		if i > 0 && bytes.Equal(rows[i-1].key, rows[i].key) {
			continue
		}
		place := hashKey(rows[i].key) & uint64(size-1)
		for l.places[place] != 0 {
			place = (place + 1) & uint64(size-1)
		}
		l.places[place] = uint32(i + 1)
	}
	return l
}

// find returns the rows with a key, in ascending order. hash must be hashKey(key).
func (l *layer) find(hash uint64, key []byte) []row {
	mask := uint64(len(l.places) - 1)
	for place := hash & mask; l.places[place] != 0; place = (place + 1) & mask {
		first := int(l.places[place] - 1)
		if !bytes.Equal(l.rows[first].key, key) {
			continue
		}
		end := first + 1
		for end < len(l.rows) && bytes.Equal(l.rows[end].key, key) {
			end++
		}
		return l.rows[first:end]
	}
	return nil
}
