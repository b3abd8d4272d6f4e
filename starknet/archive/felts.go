package archive

import (
	"encoding/binary"
	"fmt"

	"ashlar/history/rows"
	"ashlar/starknet"
)

// appendFelt appends a felt in its stored form: a length byte, and the big-endian bytes without
// leading zeros. Most felts of events are small numbers.
func appendFelt(dst []byte, felt *starknet.Felt) []byte {
	significant := felt.Significant()
	return append(append(dst, byte(len(significant))), significant...)
}

func appendFelts(dst []byte, felts []starknet.Felt) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(felts)))
	for i := range felts {
		dst = appendFelt(dst, &felts[i])
	}
	return dst
}

// takeFelt reads a stored felt. It returns false if the length is invalid.
func takeFelt(in *rows.Decoder, felt *starknet.Felt) bool {
	significant := in.Take(uint64(in.Byte()))
	if len(significant) > starknet.FeltBytes {
		return false
	}
	*felt = starknet.Felt{}
	copy(felt[starknet.FeltBytes-len(significant):], significant)
	return true
}

// Felts is a stored list of felts that is decoded one by one.
type Felts struct {
	in   rows.Decoder
	left int
}

// takeFelts begins to read a list. What follows the list is available from rest once the list
// has been read to its end.
func takeFelts(in rows.Decoder) Felts {
	count := in.Count(1)
	return Felts{in: in, left: count}
}

// Left returns the number of remaining felts.
func (f *Felts) Left() int { return f.left }

// Next reads the next felt. ok is false after the last.
func (f *Felts) Next(felt *starknet.Felt) (ok bool, err error) {
	if f.left == 0 {
		return false, f.failed()
	}
	f.left--
	if !takeFelt(&f.in, felt) {
		return false, fmt.Errorf("%w: a felt of more than %d bytes", rows.ErrCorrupt, starknet.FeltBytes)
	}
	return true, f.failed()
}

// all reads the remaining felts.
func (f *Felts) all() ([]starknet.Felt, error) {
	felts := make([]starknet.Felt, f.left)
	for i := range felts {
		if _, err := f.Next(&felts[i]); err != nil {
			return nil, err
		}
	}
	return felts, f.failed()
}

// skip skips the remaining felts.
func (f *Felts) skip() error {
	for ; f.left > 0; f.left-- {
		f.in.Take(uint64(f.in.Byte()))
	}
	return f.failed()
}

func (f *Felts) failed() error {
	if f.in.Failed() {
		return fmt.Errorf("%w: a list of felts ends outside its row", rows.ErrCorrupt)
	}
	return nil
}

// rest returns a decoder of what follows the list, which must have been read to its end.
func (f *Felts) rest() rows.Decoder { return f.in }
