package file

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"ashlar/evm/era"

	"github.com/ethereum/go-ethereum/core/types"
)

// history reads a history file, era1 or ERE.
type history struct {
	reader *era.Reader
	size   int64
	read   *atomic.Int64
	given  int // blocks returned so far
}

func openHistory(in io.ReaderAt, size int64, read *atomic.Int64) (*history, error) {
	reader, err := era.Open(in, size)
	if err != nil {
		return nil, placed(err)
	}
	return &history{reader: reader, size: size, read: read}, nil
}

func (h *history) next() (*types.Block, error) {
	block, err := h.reader.Next()
	if err == nil {
		h.given++
	}
	// The entries of a block may be far apart, so progress is counted in blocks.
	h.read.Store(h.size * int64(h.given) / int64(h.reader.Len()))
	return block, placed(err)
}

// placed turns an error of a history file into one of this package.
func placed(err error) error {
	if at := (*era.Error)(nil); errors.As(err, &at) {
		return &Error{Offset: at.Offset, Block: at.Blocks, Err: at.Err}
	}
	return err
}

// check compares a history file with its name, and with the list of checksums in its
// folder if there is one.
func (h *history) check(path string, in input) error {
	if err := h.reader.Check(path); err != nil {
		return err
	}
	list, err := era.ReadChecksums(filepath.Dir(path))
	if list == nil || err != nil {
		return err
	}
	sum, err := era.Sum(io.NewSectionReader(in, 0, h.size))
	if err != nil {
		return err
	}
	wrong := list.Check(filepath.Base(path), sum)
	if wrong == nil {
		return nil
	}
	if damage := h.damage(in); damage != nil {
		return fmt.Errorf("%w: %w", wrong, damage)
	}
	return wrong
}

// damage looks for an entry that is not as the rest of the file says, or returns nil.
func (h *history) damage(in input) error {
	reader, err := era.Open(in, h.size)
	for err == nil {
		_, err = reader.Next()
	}
	if err == io.EOF {
		return nil
	}
	return err
}
