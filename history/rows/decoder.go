package rows

import (
	"encoding/binary"
	"fmt"
)

// Decoder takes a row's value apart. The first thing that does not fit makes it
// fail, and everything read after that is zero. What it returns is part of the row.
type Decoder struct {
	rest   []byte
	failed bool
}

// Decode begins with a row.
func Decode(row []byte) Decoder { return Decoder{rest: row} }

// Take reads n bytes.
func (d *Decoder) Take(n uint64) []byte {
	if d.failed || n > uint64(len(d.rest)) {
		d.failed = true
		return nil
	}
	head := d.rest[:n:n]
	d.rest = d.rest[n:]
	return head
}

// Rest reads all that is left.
func (d *Decoder) Rest() []byte { return d.Take(uint64(len(d.rest))) }

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if b := d.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Uvarint reads a number.
func (d *Decoder) Uvarint() uint64 {
	value, n := binary.Uvarint(d.rest)
	if d.failed || n <= 0 {
		d.failed = true
		return 0
	}
	d.rest = d.rest[n:]
	return value
}

// UvarintBytes reads a length and that many bytes.
func (d *Decoder) UvarintBytes() []byte { return d.Take(d.Uvarint()) }

// Count reads how many items follow, of at least that many bytes each: more than
// there is room for makes the decoder fail.
func (d *Decoder) Count(leastBytes int) int {
	n := d.Uvarint()
	if n > uint64(len(d.rest)/leastBytes) {
		d.failed = true
		return 0
	}
	return int(n)
}

// Failed says whether something did not fit.
func (d *Decoder) Failed() bool { return d.failed }

// End says whether everything was there and nothing is left over.
func (d *Decoder) End(table string) error {
	if d.failed || len(d.rest) != 0 {
		return fmt.Errorf("%w: %s row does not decode", ErrCorrupt, table)
	}
	return nil
}

// Offsets is a table of where each of n items ends: n little-endian uint32.
type Offsets []byte

// Offsets reads a count and its offsets. Whether they fit is seen item by item.
func (d *Decoder) Offsets() Offsets { return Offsets(d.Take(4 * uint64(d.Count(4)))) }

// Len is the number of items.
func (o Offsets) Len() int { return len(o) / 4 }

// Item returns item i of items, or false when the offsets do not fit.
func (o Offsets) Item(items []byte, i int) ([]byte, bool) {
	var from uint32
	if i > 0 {
		from = binary.LittleEndian.Uint32(o[4*(i-1):])
	}
	to := binary.LittleEndian.Uint32(o[4*i:])
	if from > to || uint64(to) > uint64(len(items)) {
		return nil, false
	}
	return items[from:to:to], true
}
