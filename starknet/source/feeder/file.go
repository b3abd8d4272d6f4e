package feeder

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"ashlar/starknet"
	"ashlar/starknet/source/wire"

	"github.com/klauspost/compress/gzip"
)

// readBufferSize is the size of the read buffer, in bytes.
const readBufferSize = 64 << 10

// file is one file of blocks, plain or gzipped.
type file struct {
	path   string
	in     io.Closer
	json   *wire.Reader
	blocks int // returned so far
}

func openFile(path string) (*file, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("chain file: %w", err)
	}
	return newFile(path, in)
}

// newFile returns a reader of in, and takes ownership of it.
func newFile(path string, in io.ReadCloser) (*file, error) {
	f := &file{path: path, in: in}
	buffered := bufio.NewReaderSize(in, readBufferSize)
	var text io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			in.Close()
			return nil, f.fault(err)
		}
		text = unzipped
	}
	f.json = wire.NewReader(text, maxBlockBytes)
	return f, nil
}

func (f *file) close() { f.in.Close() } // opened for reading only

func (f *file) fault(err error) error { return &Error{Path: f.path, Blocks: f.blocks, Err: err} }

// block returns the next block, which must be the child of last, or io.EOF.
func (f *file) block(last last) (*starknet.Block, error) {
	err := f.json.Next()
	if err == io.EOF {
		return nil, io.EOF
	}
	var block *starknet.Block
	if err == nil {
		block, err = readBlock(f.json, last)
	}
	if err != nil {
		return nil, f.fault(err)
	}
	f.blocks++
	return block, nil
}
