package archive

import (
	"encoding/binary"
	"fmt"
)

// reader takes a row's value apart. The first thing that does not fit makes it
// fail, and everything read after that is zero.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed = true
		return nil
	}
	head := r.rest[:n:n]
	r.rest = r.rest[n:]
	return head
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	value, n := binary.Uvarint(r.rest)
	if r.failed || n <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return value
}

// uvarintBytes reads a length and that many bytes.
func (r *reader) uvarintBytes() []byte { return r.take(r.uvarint()) }

// end says whether everything was there and nothing is left over.
func (r *reader) end(row string) error {
	if r.failed || len(r.rest) != 0 {
		return fmt.Errorf("%w: %s row does not decode", ErrCorrupt, row)
	}
	return nil
}

// offsets is a table of where each of n items ends: n little-endian uint32.
type offsets []byte

// takeOffsets reads a count and its offsets, and checks that they ascend and
// that the items end within size bytes.
func (r *reader) takeOffsets() offsets {
	n := r.uvarint()
	if n > uint64(len(r.rest))/4 {
		r.failed = true
		return nil
	}
	return offsets(r.take(4 * n))
}

func (o offsets) len() int { return len(o) / 4 }

// span returns where item i begins and ends.
func (o offsets) span(i int) (from, to uint32) {
	if i > 0 {
		from = binary.LittleEndian.Uint32(o[4*(i-1):])
	}
	return from, binary.LittleEndian.Uint32(o[4*i:])
}

// item returns item i of items, or false when the offsets do not fit.
func (o offsets) item(items []byte, i int) ([]byte, bool) {
	from, to := o.span(i)
	if from > to || uint64(to) > uint64(len(items)) {
		return nil, false
	}
	return items[from:to:to], true
}
