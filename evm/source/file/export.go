package file

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// The first byte of an RLP list: up to rlpLongList it holds the list's size,
// from there on it holds how many bytes the size takes.
const (
	rlpList     = 0xc0
	rlpLongList = 0xf7
)

// export reads blocks that follow each other as RLP lists with nothing between.
//
// It takes the lists apart itself and hands each to the decoder whole: that is
// faster than decoding from a stream, and the place of a fault is known.
type export struct {
	in     *bufio.Reader
	size   int64 // of the whole input; 0 when unknown, as it is behind gzip
	zipped bool

	offset int64        // of the next block
	blocks int          // returned so far
	buf    bytes.Buffer // the current block, reused
}

func (e *export) next() (*types.Block, error) {
	length, err := e.listSize()
	if err == io.EOF {
		return nil, io.EOF
	}
	if err == nil {
		err = e.fill(length)
	}
	if err != nil {
		return nil, e.fault(err)
	}
	block := new(types.Block)
	if err := rlp.DecodeBytes(e.buf.Bytes(), block); err != nil {
		return nil, e.fault(fmt.Errorf("decode a list of %d bytes as a block: %w", e.buf.Len(), err))
	}
	e.offset += int64(e.buf.Len())
	e.blocks++
	return block, nil
}

// listSize reads the head of a list, from its first byte on, and returns the
// size of the list with its head. It returns io.EOF where the input ends.
func (e *export) listSize() (int64, error) {
	first, err := e.in.Peek(1)
	if err == io.EOF {
		return 0, io.EOF
	}
	if err != nil {
		return 0, cutShort(err, "a block or the end")
	}
	if first[0] < rlpList {
		return 0, fmt.Errorf("want a block, which is an RLP list, found the byte %#x", first[0])
	}
	if first[0] <= rlpLongList {
		return 1 + int64(first[0]-rlpList), nil
	}
	headSize := 1 + int(first[0]-rlpLongList)
	head, err := e.in.Peek(headSize)
	if err != nil {
		return 0, cutShort(err, fmt.Sprintf("the head of a list, %d bytes", headSize))
	}
	// A size that does not fit ends up over the bound, since no byte is dropped
	// before it is exceeded.
	var payload int64
	for _, b := range head[1:] {
		if payload = payload<<8 | int64(b); payload > maxBlockSize {
			return 0, fmt.Errorf("a list declares more than %d bytes, the most that a block may have", maxBlockSize)
		}
	}
	return int64(headSize) + payload, nil
}

// fill reads the whole list into the buffer. The buffer grows with what arrives,
// never by what a hostile head declares.
func (e *export) fill(length int64) error {
	if left := e.size - e.offset; !e.zipped && length > left {
		return fmt.Errorf("cut short: a list declares %d bytes, the file has %d more: %w", length, left, io.ErrUnexpectedEOF)
	}
	e.buf.Reset()
	n, err := io.CopyN(&e.buf, e.in, length)
	if err != nil {
		return cutShort(err, fmt.Sprintf("a list of %d bytes, of which %d are there", length, n))
	}
	return nil
}

func (e *export) fault(err error) *Error {
	return &Error{Offset: e.offset, Unzipped: e.zipped, Block: e.blocks, Err: err}
}

// cutShort words an end of input inside of something; other errors it passes on.
func cutShort(err error, inside string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("cut short: want %s: %w", inside, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("reading %s: %w", inside, err)
}
