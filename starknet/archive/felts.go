package archive

import (
	"encoding/binary"
	"fmt"

	"ashlar/history/rows"
	"ashlar/starknet"
)

// appendFelt appends a felt as it is stored: a length byte and as many bytes,
// without leading zeros. Most felts of events are small numbers.
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

// takeFelt reads a stored felt, or returns false where it is none.
func takeFelt(in *rows.Decoder, felt *starknet.Felt) bool {
	significant := in.Take(uint64(in.Byte()))
	if len(significant) > starknet.FeltBytes {
		return false
	}
	*felt = starknet.Felt{}
	copy(felt[starknet.FeltBytes-len(significant):], significant)
	return true
}

// Felts is a stored list of felts, read one by one.
type Felts struct {
	in   rows.Decoder
	left int
}

// takeFelts begins to read a list; what comes behind it can be read only once the
// list was read to its end.
func takeFelts(in rows.Decoder) Felts {
	count := in.Count(1)
	return Felts{in: in, left: count}
}

// Left is how many felts are still to be read.
func (f *Felts) Left() int { return f.left }

// Next reads the next felt, or returns false after the last.
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

// all reads all that is left.
func (f *Felts) all() ([]starknet.Felt, error) {
	felts := make([]starknet.Felt, f.left)
	for i := range felts {
		if _, err := f.Next(&felts[i]); err != nil {
			return nil, err
		}
	}
	return felts, f.failed()
}

// skip reads all that is left.
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

// rest is what comes behind the list, which was read to its end.
func (f *Felts) rest() rows.Decoder { return f.in }
