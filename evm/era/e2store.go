package era

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
)

// kind is the type of an entry, read as a little-endian number.
type kind uint16

const (
	kindVersion         kind = 0x3265
	kindHeader          kind = 0x03
	kindBody            kind = 0x04
	kindReceipts        kind = 0x05
	kindTotalDifficulty kind = 0x06
	kindAccumulator     kind = 0x07
	kindSlimReceipts    kind = 0x0a
	kindProof           kind = 0x0b
	kindBlockIndex      kind = 0x3266
	kindDynamicIndex    kind = 0x3267
)

// String names a kind as the specification does.
func (k kind) String() string {
	name := "unknown"
	switch k {
	case kindVersion:
		name = "Version"
	case kindHeader:
		name = "CompressedHeader"
	case kindBody:
		name = "CompressedBody"
	case kindReceipts:
		name = "CompressedReceipts"
	case kindTotalDifficulty:
		name = "TotalDifficulty"
	case kindAccumulator:
		name = "Accumulator"
	case kindSlimReceipts:
		name = "CompressedSlimReceipts"
	case kindProof:
		name = "Proof"
	case kindBlockIndex:
		name = "BlockIndex"
	case kindDynamicIndex:
		name = "DynamicBlockIndex"
	}
	return fmt.Sprintf("%s entry (type %#x)", name, uint16(k))
}

// entryHeadSize is what precedes an entry's data: its type in two bytes, the
// data's length in four, two that are zero; all little-endian.
const entryHeadSize = 8

// maxEntries bounds the entries of a file. A full file with all that a format
// knows has 5 for each block; the rest leaves room for entries of other types.
const maxEntries = 16 * MaxBlocks

// entry is one record of an e2store file.
type entry struct {
	kind   kind
	length int64 // of the data
	offset int64 // of its head
}

func (e entry) data() int64 { return e.offset + entryHeadSize }
func (e entry) end() int64  { return e.data() + e.length }

// appendEntryHead appends what precedes the data of an entry.
func appendEntryHead(dst []byte, k kind, length int) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(k))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(length))
	return append(dst, 0, 0)
}

// e2store reads the entries of a file. A length that the file's size does not allow is an
// error.
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

// entries lists the entries of the file. If it fails, offset is where.
func (s *e2store) entries() (all []entry, offset int64, err error) {
	for offset < s.size {
		e, err := s.at(offset)
		if err == nil && len(all) == maxEntries {
			err = fmt.Errorf("the file has more than %d entries, the limit", maxEntries)
		}
		if err != nil {
			return all, offset, err
		}
		all = append(all, e)
		offset = e.end()
	}
	return all, offset, nil
}

// at reads the head of the entry at an offset.
func (s *e2store) at(offset int64) (entry, error) {
	if left := s.size - offset; left < entryHeadSize {
		return entry{}, fmt.Errorf("cut short: found %d bytes, want the head of an entry, %d bytes: %w", left, entryHeadSize, io.ErrUnexpectedEOF)
	}
	var head [entryHeadSize]byte
	if err := s.readFull(head[:], offset); err != nil {
		return entry{}, err
	}
	e := entry{
		kind:   kind(binary.LittleEndian.Uint16(head[:])),
		length: int64(binary.LittleEndian.Uint32(head[2:])),
		offset: offset,
	}
	if head[6] != 0 || head[7] != 0 {
		return entry{}, fmt.Errorf("the head of an entry ends in %#x; want two bytes of zero", head[6:])
	}
	if left := s.size - e.data(); e.length > left {
		return entry{}, fmt.Errorf("cut short: the %v declares %d bytes, the file has %d more: %w", e.kind, e.length, left, io.ErrUnexpectedEOF)
	}
	return e, nil
}

// word reads an entry whose data is exactly 32 bytes.
func (s *e2store) word(e entry) (word [32]byte, err error) {
	if e.length != int64(len(word)) {
		return word, fmt.Errorf("the %v has %d bytes; want %d", e.kind, e.length, len(word))
	}
	return word, s.readFull(word[:], e.data())
}

// unzip sets out to the data of an entry in snappy's framing format, which may
// become most bytes. The buffer grows with what is really decompressed.
func (s *e2store) unzip(out *bytes.Buffer, e entry, most int64) error {
	out.Reset()
	s.buffered.Reset(io.NewSectionReader(s.in, e.data(), e.length))
	s.unsnappy.Reset(s.buffered)
	n, err := out.ReadFrom(io.LimitReader(s.unsnappy, most+1))
	if err != nil {
		return fmt.Errorf("the %v is not in snappy's framing format: %w", e.kind, err)
	}
	if n > most {
		return fmt.Errorf("the %v decompresses to more than %d bytes, the limit", e.kind, most)
	}
	return nil
}

// numbers reads the data of an entry as 64-bit numbers, little-endian.
func (s *e2store) numbers(e entry) ([]uint64, error) {
	if e.length%8 != 0 {
		return nil, fmt.Errorf("the %v has %d bytes; want a multiple of 8", e.kind, e.length)
	}
	data := make([]byte, e.length)
	if err := s.readFull(data, e.data()); err != nil {
		return nil, err
	}
	numbers := make([]uint64, len(data)/8)
	for i := range numbers {
		numbers[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
	return numbers, nil
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
