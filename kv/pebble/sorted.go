package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// A bulk load's batches are sorted before they are written. Pebble takes a batch row
// by row into a memtable, where each row is looked for from where the one before was
// put: in the order of the keys that is a few steps in memory that was just used, in
// any other a way through the whole table, which is much larger than a processor's cache.

// operation is one of a batch's operations: where it lies in the batch's encoding.
type operation struct {
	abbreviation uint64 // part of its key, in order; which part depends on the step of sorting
	begin, end   uint32 // of the operation
	key          uint32 // where its key begins
	prefix       uint16 // length of the key's prefix
	suffix       uint16 // and of the rest
}

// sorter sorts the operations of a batch by their keys. Its memory is used again: that of each batch would
// be a sixth of what an import leaves to the collector.
type sorter struct {
	encoded []byte
	all     []operation
	ranks   []uint64    // scratch of arrange
	before  []operation // the same
	result  []byte
}

// reusedOperations is how many operations a batch may have for the memory to be used again, 72 bytes each. A
// group of an import's blocks has some ten thousand, in a few megabytes.
const reusedOperations = 1 << 20

var sorters = sync.Pool{New: func() any { return new(sorter) }}

func (s *sorter) prefix(o operation) []byte { return s.encoded[o.key : o.key+uint32(o.prefix)] }
func (s *sorter) suffix(o operation) []byte {
	from := o.key + uint32(o.prefix)
	return s.encoded[from : from+uint32(o.suffix)]
}

// newSorter returns a sorter. It must be given back, unless its result is still used.
func newSorter() *sorter { return sorters.Get().(*sorter) }

func (s *sorter) giveBack() {
	s.encoded = nil
	if len(s.all) <= reusedOperations && cap(s.result) <= maxRetained {
		sorters.Put(s)
	}
}

// sorted returns the encoding of a batch with its operations in the order of their
// keys, those of one key in the order that they had; false for an encoding that is broken.
// The result is valid until the sorter is given back.
func (s *sorter) sorted(encoded []byte) ([]byte, bool) {
	s.encoded = encoded
	if !s.read() {
		return nil, false
	}
	s.sort(s.all, 0)
	s.result = append(slices.Grow(s.result[:0], len(encoded)), encoded[:batchrepr.HeaderLen]...)
	for _, o := range s.all {
		s.result = append(s.result, encoded[o.begin:o.end]...)
	}
	return s.result, true
}

// read finds the operations of the batch, or returns false if it is broken.
func (s *sorter) read() bool {
	header, ok := batchrepr.ReadHeader(s.encoded)
	if !ok {
		return false
	}
	s.all = slices.Grow(s.all[:0], int(header.Count))
	rest := batchrepr.Read(s.encoded)
	for len(rest) > 0 {
		o := operation{begin: uint32(len(s.encoded) - len(rest))}
		kind, key, value, ok, err := rest.Next()
		if !ok || err != nil {
			return false
		}
		o.end = uint32(len(s.encoded) - len(rest))
		// The value ends the operation, with its length before it, and the key comes before that.
		o.key = o.end - uint32(len(key))
		if kind != lsm.InternalKeyKindDelete { // which has no value
			o.key -= uint32(len(value) + uvarintLen(len(value)))
		}
		o.prefix = uint16(split(key))
		o.suffix = uint16(len(key)) - o.prefix
		s.all = append(s.all, o)
	}
	return true
}

func uvarintLen(n int) int {
	var buffer [binary.MaxVarintLen64]byte
	return binary.PutUvarint(buffer[:], uint64(n))
}

// fewOperations are sorted by comparing whole keys.
const fewOperations = 12

// sort sorts operations whose prefixes have their first depth bytes in common: by
// the next bytes, as numbers, and then those that have these in common by what follows.
func (s *sorter) sort(operations []operation, depth int) {
	s.arrange(operations, depth)
	for begin := 0; begin < len(operations); {
		end := begin + 1
		for end < len(operations) && operations[end].abbreviation == operations[begin].abbreviation {
			end++
		}
		alike := operations[begin:end]
		begin = end
		if len(alike) == 1 {
			continue
		}
		if len(alike) > fewOperations {
			if common := s.common(alike); common > depth {
				s.sort(alike, common)
				continue
			}
		}
		// Versions of one thing are put from the oldest on and stored from the newest on.
		if s.compare(alike[0], alike[len(alike)-1]) > 0 {
			slices.Reverse(alike)
		}
		slices.SortFunc(alike, s.compare)
	}
}

// arrange sorts operations by as many of the next eight bytes as leave space for a position in the
// same number. Numbers are sorted several times as fast as operations by a function.
func (s *sorter) arrange(operations []operation, depth int) {
	positionBits := bits.Len(uint(len(operations)))
	s.ranks = s.ranks[:0]
	for i, o := range operations {
		s.ranks = append(s.ranks, abbreviatedKey(s.prefix(o)[depth:])>>positionBits<<positionBits|uint64(i))
	}
	slices.Sort(s.ranks)
	s.before = append(s.before[:0], operations...)
	for i, rank := range s.ranks {
		operations[i] = s.before[rank&(1<<positionBits-1)]
		operations[i].abbreviation = rank >> positionBits
	}
}

// common is how many bytes the prefixes of operations have in common.
func (s *sorter) common(operations []operation) int {
	common := s.prefix(operations[0])
	for _, o := range operations[1:] {
		prefix := s.prefix(o)
		n := min(len(common), len(prefix))
		if bytes.Equal(common[:n], prefix[:n]) {
			common = common[:n]
			continue
		}
		for n = 0; common[n] == prefix[n]; n++ {
		}
		common = common[:n]
	}
	return len(common)
}

// compare orders operations as the store orders their keys, and those of one key as
// they are in the batch.
func (s *sorter) compare(a, b operation) int {
	return cmp.Or(
		bytes.Compare(s.prefix(a), s.prefix(b)),
		bytes.Compare(s.suffix(a), s.suffix(b)),
		cmp.Compare(a.begin, b.begin),
	)
}
