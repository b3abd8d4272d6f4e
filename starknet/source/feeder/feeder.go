// Package feeder reads the blocks of a Starknet network from files in which the answers of
// a Starknet feeder gateway were kept, of any version since the first: those to
// get_block, and those to get_state_update with includeBlock. Files may be
// gzipped, and may hold several answers one after the other.
//
// Blocks come in the order of their numbers, whatever the files are called. Each
// is a child of the one before, with a receipt for each transaction. That a
// block's hash is right is for ingest to say, since nodes' blocks are judged by
// the same rule. A file that is cut short, corrupt or hostile yields an error with the
// exact place, never a panic, a wrong block, or more memory than in proportion
// to the bytes of one block.
package feeder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"ashlar/starknet"
	"ashlar/starknet/source/wire"
)

// maxBlockBytes bounds one block as the files have it.
const maxBlockBytes = 128 << 20

// Error says which file is not as it should be. What lies in it has its place in
// a [strictjson.Error].
type Error struct {
	Path   string
	Blocks int // whole blocks of the file before the fault
	Err    error
}

func (e *Error) Error() string {
	if e.Blocks > 0 {
		return fmt.Sprintf("chain file %s: after %d whole blocks: %v", e.Path, e.Blocks, e.Err)
	}
	return fmt.Sprintf("chain file %s: %v", e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Files are files of blocks, open for reading from the lowest block to the
// highest. Next and Close belong to one goroutine; Progress may be called from any.
type Files struct {
	listed []listed // by first block
	next   int      // in listed
	open   *file    // the file that is being read; nil before the first and between two
	last   last
	ended  error // what ended the stream, io.EOF included

	read  atomic.Int64 // bytes of the files that were read to their ends
	total int64
}

// listed is a file with the number of the first block in it.
type listed struct {
	path  string
	size  int64
	first uint64
}

// last is the block that was returned last.
type last struct {
	path   string // of its file; empty before the first block
	number uint64
	hash   starknet.Felt
}

// Open makes ready to read files, and all files in folders and their subfolders;
// those whose names begin with a dot aside. It looks into each for the number of
// its first block.
func Open(ctx context.Context, paths ...string) (*Files, error) {
	f := new(Files)
	for _, path := range paths {
		if err := f.list(ctx, path); err != nil {
			return nil, err
		}
	}
	if len(f.listed) == 0 {
		return nil, &Error{Path: strings.Join(paths, ", "), Err: errors.New("found no file, expected files of blocks")}
	}
	slices.SortFunc(f.listed, func(a, b listed) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(f.listed); i++ {
		if a, b := f.listed[i-1], f.listed[i]; a.first == b.first {
			return nil, &Error{Path: b.path, Err: fmt.Errorf("found block %d, which %s has too: expected each block once", b.first, a.path)}
		}
	}
	return f, nil
}

// list takes in a file, or all that a folder holds.
func (f *Files) list(ctx context.Context, root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("chain file: %w", err)
		}
		if path != root && strings.HasPrefix(entry.Name(), ".") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := os.Stat(path) // of what a link leads to
		if err != nil {
			return fmt.Errorf("chain file: %w", err)
		}
		switch {
		case entry.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return &Error{Path: path, Err: errors.New("is no file; expected a file of blocks")}
		}
		first, err := firstNumber(path)
		if err != nil {
			return err
		}
		f.listed = append(f.listed, listed{path, info.Size(), first})
		f.total += info.Size()
		return nil
	})
}

// Next returns the next block, or io.EOF after the last. After an error it
// returns the same error again.
func (f *Files) Next() (*starknet.Block, error) {
	if f.ended != nil {
		return nil, f.ended
	}
	block, err := f.nextBlock()
	if err != nil {
		f.ended = err
		f.closeFile()
		return nil, err
	}
	return block, nil
}

func (f *Files) nextBlock() (*starknet.Block, error) {
	for {
		if f.open == nil {
			if f.next == len(f.listed) {
				return nil, io.EOF
			}
			opened, err := openFile(f.listed[f.next].path)
			if err != nil {
				return nil, err
			}
			f.open = opened
			f.next++
		}
		block, err := f.open.block(f.last)
		if err == io.EOF {
			f.closeFile()
			continue
		}
		if err != nil {
			return nil, err
		}
		f.last = last{f.open.path, block.Number, block.Hash}
		return block, nil
	}
}

// closeFile closes the file that is being read, of which no more is wanted.
func (f *Files) closeFile() {
	if f.open != nil {
		f.open.close()
		f.open = nil
		f.read.Add(f.listed[f.next-1].size)
	}
}

// Path is that of the file which has a block that was returned: for errors that
// are found in it later.
func (f *Files) Path(number uint64) string {
	i, found := slices.BinarySearchFunc(f.listed, number, func(l listed, number uint64) int { return cmp.Compare(l.first, number) })
	if !found {
		i = max(0, i-1)
	}
	return f.listed[i].path
}

// Progress is how many bytes of all files have been read. It grows from file to file.
func (f *Files) Progress() (read, total int64) { return f.read.Load(), f.total }

// Close ends the reading.
func (f *Files) Close() error {
	if f.ended == nil {
		f.ended = fs.ErrClosed
	}
	f.closeFile()
	return nil
}

// firstNumber is that of the first block in a file, of which it reads no more
// than it must.
func firstNumber(path string) (uint64, error) {
	f, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer f.close()
	if err := f.json.Next(); err == io.EOF {
		return 0, f.fault(errors.New("found nothing, expected a block"))
	} else if err != nil {
		return 0, f.fault(err)
	}
	number, err := findNumber(f.json)
	if err != nil {
		return 0, f.fault(err)
	}
	return number, nil
}

// findNumber reads a block as far as its number. Like readBlock it looks into one
// "block" and not into one within: a file may nest as many as it has bytes for.
func findNumber(in *wire.Reader) (number uint64, err error) {
	found := errors.New("found")
	member := func(name string) error {
		if name != "block_number" {
			return in.Skip()
		}
		if number, err = in.Uint64(); err != nil {
			return err
		}
		return found
	}
	err = in.Object(func(name string) error {
		if name == "block" {
			return in.Object(member)
		}
		return member(name)
	})
	switch err {
	case nil:
		return 0, in.FailAt("block_number", errors.New("missing"))
	case found:
		return number, nil
	}
	return 0, err
}
