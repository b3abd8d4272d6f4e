package era

import (
	"encoding/binary"
	"errors"
	"io"
)

// Range is the numbers of the first and the last block of a file.
type Range struct{ First, Last uint64 }

func rangeFrom(first uint64, count int) Range {
	return Range{first, first + uint64(count) - 1}
}

// errNoIndex says that a file does not end with an index.
var errNoIndex = errors.New("the file does not end with a block index")

// Peek reads which blocks a file of that many bytes claims to hold, from the index at
// its end. It checks nothing else.
func Peek(in io.ReaderAt, size int64) (Range, error) {
	s := newE2store(in, size)
	var tail [16]byte
	if size < int64(len(tail)) {
		return Range{}, errNoIndex
	}
	if err := s.readFull(tail[:], size-int64(len(tail))); err != nil {
		return Range{}, err
	}
	kinds, count := binary.LittleEndian.Uint64(tail[:]), binary.LittleEndian.Uint64(tail[8:])
	if count == 0 || count > MaxBlocks {
		return Range{}, errNoIndex
	}
	found, err := s.peekIndex(kindBlockIndex, count+2)
	if errors.Is(err, errNoIndex) && kinds <= 5 {
		found, err = s.peekIndex(kindDynamicIndex, count*kinds+3)
	}
	return rangeFrom(found, int(count)), err
}

// peekIndex returns the first number of the index at the file's end, which should be
// of a kind and have so many numbers.
func (s *e2store) peekIndex(k kind, numbers uint64) (first uint64, err error) {
	offset := s.size - 8*int64(numbers) - entryHeadSize
	if offset < 0 {
		return 0, errNoIndex
	}
	if e, err := s.at(offset); err != nil || e.kind != k || e.end() != s.size {
		return 0, errNoIndex
	}
	var number [8]byte
	err = s.readFull(number[:], offset+entryHeadSize)
	return binary.LittleEndian.Uint64(number[:]), err
}
