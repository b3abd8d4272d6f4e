package rows

import (
	"encoding/binary"
	"fmt"
)

// Decoder reads the value of a row. It fails at the first invalid item and then returns
// zero values. Returned slices alias the row.
type Decoder struct {
	rest   []byte
	failed bool
}

// Decode returns a Decoder at the beginning of a row.
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

// Left returns the number of bytes that are left, or 0 after an invalid item.
func (d *Decoder) Left() int {
	if d.failed {
		return 0
	}
	return len(d.rest)
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

// Uvarint reads an unsigned varint.
func (d *Decoder) Uvarint() uint64 {
	value, n := binary.Uvarint(d.rest)
	if d.failed || n <= 0 {
		d.failed = true
		return 0
	}
	d.rest = d.rest[n:]
	return value
}

// UvarintBytes reads a length and as many bytes.
func (d *Decoder) UvarintBytes() []byte { return d.Take(d.Uvarint()) }

// Count reads the number of items that follow. It fails if the row is too short for so
// many items of at least leastBytes each.
func (d *Decoder) Count(leastBytes int) int {
	n := d.Uvarint()
	if n > uint64(len(d.rest)/leastBytes) {
		d.failed = true
		return 0
	}
	return int(n)
}

// Failed reports whether an item was invalid.
func (d *Decoder) Failed() bool { return d.failed }

// End returns ErrCorrupt if the decoder failed or the row has bytes left. table is named in the error.
func (d *Decoder) End(table string) error {
	if d.failed || len(d.rest) != 0 {
		return fmt.Errorf("%w: %s row does not decode", ErrCorrupt, table)
	}
	return nil
}

// Offsets is a table of the end offsets of n items: n little-endian uint32.
type Offsets []byte

// Offsets reads a count and as many offsets. Item validates them.
func (d *Decoder) Offsets() Offsets { return Offsets(d.Take(4 * uint64(d.Count(4)))) }

// Len returns the number of items.
func (o Offsets) Len() int { return len(o) / 4 }

// Item returns the i-th of items, or false if the offsets are invalid.
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
