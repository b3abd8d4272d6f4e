package file

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
)

// The types of entries that an era1 file has, read as little-endian numbers.
const (
	entryVersion            = 0x3265
	entryCompressedHeader   = 0x03
	entryCompressedBody     = 0x04
	entryCompressedReceipts = 0x05
	entryTotalDifficulty    = 0x06
	entryAccumulator        = 0x07
	entryBlockIndex         = 0x3266
)

// entryHeadSize is what precedes an entry's data: its type in two bytes, the
// data's length in four, two that are zero; all little-endian.
const entryHeadSize = 8

// entry is one record of an e2store file.
type entry struct {
	kind   uint16
	length int64 // of the data
	offset int64 // of its head
}

func (e entry) data() int64 { return e.offset + entryHeadSize }
func (e entry) end() int64  { return e.data() + e.length }

// e2store reads the entries of a file, of which it never believes more than the
// file's size allows.
type e2store struct {
	in       io.ReaderAt
	size     int64
	buffered *bufio.Reader
	unsnappy *snappy.Reader
}

func newE2store(in io.ReaderAt, size int64) *e2store {
	return &e2store{
		in:       in,
		size:     size,
		buffered: bufio.NewReader(nil),
		unsnappy: snappy.NewReader(nil),
	}
}

// at reads the head of the entry at an offset.
func (s *e2store) at(offset int64) (entry, error) {
	if left := s.size - offset; left < entryHeadSize {
		return entry{}, fmt.Errorf("cut short: want the head of an entry, %d bytes, found %d: %w", entryHeadSize, left, io.ErrUnexpectedEOF)
	}
	var head [entryHeadSize]byte
	if err := s.readFull(head[:], offset); err != nil {
		return entry{}, err
	}
	e := entry{
		kind:   binary.LittleEndian.Uint16(head[:]),
		length: int64(binary.LittleEndian.Uint32(head[2:])),
		offset: offset,
	}
	if head[6] != 0 || head[7] != 0 {
		return entry{}, fmt.Errorf("the head of an entry ends in %#x; want two bytes of zero", head[6:])
	}
	if left := s.size - e.data(); e.length > left {
		return entry{}, fmt.Errorf("cut short: an entry of type %#x declares %d bytes, the file has %d more: %w", e.kind, e.length, left, io.ErrUnexpectedEOF)
	}
	return e, nil
}

// word reads an entry whose data is exactly 32 bytes.
func (s *e2store) word(e entry) (word [32]byte, err error) {
	if e.length != int64(len(word)) {
		return word, fmt.Errorf("an entry of type %#x has %d bytes; want %d", e.kind, e.length, len(word))
	}
	return word, s.readFull(word[:], e.data())
}

// unzip appends to out the data of an entry in snappy's framing format, which
// may become most bytes. The buffer grows with what is really decompressed.
func (s *e2store) unzip(out *bytes.Buffer, e entry, most int64) error {
	s.buffered.Reset(io.NewSectionReader(s.in, e.data(), e.length))
	s.unsnappy.Reset(s.buffered)
	n, err := out.ReadFrom(io.LimitReader(s.unsnappy, most+1))
	if err != nil {
		return fmt.Errorf("an entry of type %#x is not in snappy's framing format: %w", e.kind, err)
	}
	if n > most {
		return fmt.Errorf("an entry of type %#x decompresses to more than %d bytes, the most that it may", e.kind, most)
	}
	return nil
}

func (s *e2store) readFull(p []byte, offset int64) error {
	if n, err := s.in.ReadAt(p, offset); n < len(p) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file has become shorter since it was opened
		}
		return fmt.Errorf("reading %d bytes: %w", len(p), err)
	}
	return nil
}
