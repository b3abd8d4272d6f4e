// Package file reads the blocks of a chain from files: the RLP exports that geth
// and hive write, plain or gzipped, and the history files era1 and ERE.
//
// Blocks come in the order of the file. Those of an export are decoded but not judged:
// that a block follows its parent, and that its roots are right, is for execution to
// say. A history file is checked against everything that it says itself, its name and
// the list of checksums in its folder; see [era.Reader]. A file that is cut short,
// corrupt or hostile yields an error that names the place, never a panic, a wrong
// block, or more memory than in proportion to the bytes that the file really holds.
package file

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/klauspost/compress/gzip"
)

// maxBlockSize bounds one block as the files carry it. EIP-7934 caps a block at
// 8 MiB; before it gas did, far below this.
const maxBlockSize = 128 << 20

// historyMagic is what a history file begins with.
var historyMagic = [2]byte{'e', '2'}

// readBufferSize is how much of an export is read at a time.
const readBufferSize = 128 << 10

// decoder is what each format implements: the next block, or io.EOF. Its other
// errors are of type *Error, without the path.
type decoder interface {
	next() (*types.Block, error)
}

// input is what a file is read through: from its beginning on, or at places.
type input interface {
	io.Reader
	io.ReaderAt
	io.Closer
}

// File is a file of blocks, open for reading from its beginning to its end. Next
// and Close belong to one goroutine; Progress may be called from any.
type File struct {
	path  string
	in    input
	size  int64
	read  atomic.Int64
	from  decoder
	ended error // what ended the stream, io.EOF included
}

// Open recognizes a file by its content, not by its name, and makes ready to
// return its first block. The headers of a history file are read through and checked,
// and if there is a list of checksums beside it, so is the whole file.
func Open(path string) (*File, error) {
	osFile, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("chain file: %w", err)
	}
	info, err := osFile.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a folder; want a file of blocks")
	}
	if err != nil {
		osFile.Close()
		return nil, fmt.Errorf("chain file %s: %w", path, err)
	}
	f, err := open(path, osFile, info.Size())
	if err != nil {
		return nil, err
	}
	if h, ok := f.from.(*history); ok {
		if err := h.check(path, osFile); err != nil {
			f.in.Close()
			return nil, named(path, err)
		}
	}
	return f, nil
}

// open begins to read an input of that many bytes, which it then owns.
func open(path string, in input, size int64) (*File, error) {
	f := &File{path: path, in: in, size: size}
	if err := f.recognize(); err != nil {
		in.Close()
		return nil, named(path, err)
	}
	return f, nil
}

// Next returns the next block, or io.EOF after the last. An error ends the file:
// every later call returns the same. The block is the caller's; receipts that the
// file carries are not trusted and not returned.
func (f *File) Next() (*types.Block, error) {
	if f.ended != nil {
		return nil, f.ended
	}
	block, err := f.from.next()
	if err != nil {
		f.ended = named(f.path, err)
		return nil, f.ended
	}
	return block, nil
}

// Progress returns how many bytes of the file have been read, and how many it has. Bytes of a
// compressed file are counted as they are stored.
func (f *File) Progress() (read, total int64) {
	return min(f.read.Load(), f.size), f.size
}

// Last returns the last block of a history file, and false for other files.
func (f *File) Last() (chain.Ref, bool) {
	h, ok := f.from.(*history)
	if !ok {
		return chain.Ref{}, false
	}
	return chain.Ref{Number: h.reader.Range().Last, Hash: h.reader.LastHash()}, true
}

// Blocks is how many blocks a history file has, and 0 for other files.
func (f *File) Blocks() int {
	if h, ok := f.from.(*history); ok {
		return h.reader.Len()
	}
	return 0
}

// Unchecked is how many proofs against the beacon chain a history file has. They are not
// checked.
func (f *File) Unchecked() int {
	if h, ok := f.from.(*history); ok {
		return h.reader.Unchecked()
	}
	return 0
}

// Close ends the reading.
func (f *File) Close() error {
	if f.ended == nil {
		f.ended = fmt.Errorf("%s: %w", f.path, os.ErrClosed)
	}
	return f.in.Close()
}

// recognize looks at the first bytes and sets the decoder for them.
func (f *File) recognize() error {
	var magic [2]byte
	switch n, err := f.in.ReadAt(magic[:], 0); {
	case n == 0 && err == io.EOF:
		return errors.New("is empty; want an RLP chain export (plain or gzip) or a history file (era1 or ERE)")
	case err != nil && err != io.EOF:
		return err
	}
	switch counted := (&countingReader{f.in, &f.read}); {
	case bytes.Equal(magic[:], []byte{0x1f, 0x8b}):
		unzipped, err := gzip.NewReader(bufio.NewReaderSize(counted, readBufferSize))
		if err != nil {
			return &Error{Err: fmt.Errorf("gzip header: %w", err)}
		}
		f.from = &export{in: bufio.NewReaderSize(unzipped, readBufferSize), zipped: true}
	case magic == historyMagic:
		opened, err := openHistory(f.in, f.size, &f.read)
		if err != nil {
			return err
		}
		f.from = opened
	case magic[0] >= rlpList:
		f.from = &export{in: bufio.NewReaderSize(counted, readBufferSize), size: f.size}
	default:
		return &Error{Err: fmt.Errorf("begins with the bytes %#x; want an RLP chain export (plain or gzip) or a history file (era1 or ERE)", magic)}
	}
	return nil
}

// named adds a file's path to an error.
func named(path string, err error) error {
	if err == io.EOF {
		return err
	}
	if at, ok := err.(*Error); ok {
		if at.Path == "" {
			at.Path = path
		}
		return at
	}
	return fmt.Errorf("chain file %s: %w", path, err)
}

// countingReader counts what is read through it.
type countingReader struct {
	in   io.Reader
	read *atomic.Int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.read.Add(int64(n))
	return n, err
}
