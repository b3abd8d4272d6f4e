package file

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Recorded returns a history file as a source of blocks with receipts. It fails for files
// without receipts. The file must not be read otherwise.
func (f *File) Recorded() (*Recorded, error) {
	h, ok := f.from.(*history)
	if !ok || !h.reader.HasReceipts() {
		return nil, fmt.Errorf("%s: %w", f.path, ErrNoReceipts)
	}
	return &Recorded{f, h}, nil
}

// ErrNoReceipts means that a file has blocks without their receipts.
var ErrNoReceipts = errors.New("the file has no receipts, which blocks without state need (want era1 or ERE with receipts)")

// Recorded reads the blocks of a history file with their receipts.
type Recorded struct {
	file    *File
	history *history
}

// First returns the number of the first block.
func (r *Recorded) First() uint64 { return r.history.reader.Range().First }

// Header returns the header of a block and its hash, or nil if the file does not have it.
func (r *Recorded) Header(number uint64) (*types.Header, common.Hash) {
	return r.history.reader.Header(number)
}

// NextRecorded returns the next block with its receipts, or io.EOF after the last. Such files
// have no access lists.
func (r *Recorded) NextRecorded() (*types.Block, types.Receipts, []byte, error) {
	block, receipts, err := r.history.reader.NextRecorded()
	if err == nil {
		r.history.given++
	}
	r.history.read.Store(r.history.size * int64(r.history.given) / int64(r.history.reader.Len()))
	if err != nil {
		return nil, nil, nil, named(r.file.path, placed(err))
	}
	return block, receipts, nil, nil
}
