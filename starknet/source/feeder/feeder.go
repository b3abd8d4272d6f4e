// Package feeder reads the blocks of a Starknet network from files with responses of a feeder
// gateway of any version: responses to get_block, or to get_state_update with includeBlock.
// Files may be gzipped, and may contain several responses in sequence.
//
// Blocks are returned in ascending order, whatever the names of the files. Each is the child of
// its predecessor and has a receipt for each transaction. Block hashes are not verified here but
// in ingest, which does so for all sources. A truncated, corrupt or malicious file results in an
// error with the exact place; memory is proportional to the size of one block.
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

// Error reports a problem with a file. For a problem with its contents, Err is a
// [strictjson.Error] with the place.
type Error struct {
	Path   string
	Blocks int // whole blocks in the file before the error
	Err    error
}

func (e *Error) Error() string {
	if e.Blocks > 0 {
		return fmt.Sprintf("chain file %s: after %d whole blocks: %v", e.Path, e.Blocks, e.Err)
	}
	return fmt.Sprintf("chain file %s: %v", e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Files reads blocks from files in ascending order. Next and Close must be called by one
// goroutine; Progress may be called concurrently.
type Files struct {
	listed []listed // by first block
	next   int      // in listed
	open   *file    // being read; nil before the first file and between files
	last   last
	ended  error // first error of Next, including io.EOF

	read  atomic.Int64 // bytes of the files read completely
	total int64
}

// listed is a file and its first block number.
type listed struct {
	path  string
	size  int64
	first uint64
}

// last is the last block that was returned.
type last struct {
	path   string // of the file; empty before the first block
	number uint64
	hash   starknet.Felt
}

// Open opens files, and all files in folders and their subfolders except for those whose names
// begin with a dot. It reads the first block number of each file.
func Open(ctx context.Context, paths ...string) (*Files, error) {
	f := new(Files)
	for _, path := range paths {
		if err := f.list(ctx, path); err != nil {
			return nil, err
		}
	}
	if len(f.listed) == 0 {
		return nil, &Error{Path: strings.Join(paths, ", "), Err: errors.New("no files found, expected files of blocks")}
	}
	slices.SortFunc(f.listed, func(a, b listed) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(f.listed); i++ {
		if a, b := f.listed[i-1], f.listed[i]; a.first == b.first {
			return nil, &Error{Path: b.path, Err: fmt.Errorf("block %d is also in %s, expected each block once", b.first, a.path)}
		}
	}
	return f, nil
}

// list adds a file, or all files in a folder.
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
		info, err := os.Stat(path) // follows links
		if err != nil {
			return fmt.Errorf("chain file: %w", err)
		}
		switch {
		case entry.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return &Error{Path: path, Err: errors.New("not a regular file; expected a file of blocks")}
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

// Next returns the next block, or io.EOF after the last. After an error it returns the same
// error again.
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

// closeFile closes the current file.
func (f *Files) closeFile() {
	if f.open != nil {
		f.open.close()
		f.open = nil
		f.read.Add(f.listed[f.next-1].size)
	}
}

// Path returns the file of a block that Next returned, for error messages.
func (f *Files) Path(number uint64) string {
	i, found := slices.BinarySearchFunc(f.listed, number, func(l listed, number uint64) int { return cmp.Compare(l.first, number) })
	if !found {
		i = max(0, i-1)
	}
	return f.listed[i].path
}

// Progress returns the bytes of the files read completely, and of all files.
func (f *Files) Progress() (read, total int64) { return f.read.Load(), f.total }

// Close closes the current file. Next then returns an error.
func (f *Files) Close() error {
	if f.ended == nil {
		f.ended = fs.ErrClosed
	}
	f.closeFile()
	return nil
}

// firstNumber returns the number of the first block in a file. It reads no more than necessary.
func firstNumber(path string) (uint64, error) {
	f, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer f.close()
	if err := f.json.Next(); err == io.EOF {
		return 0, f.fault(errors.New("the file is empty, expected a block"))
	} else if err != nil {
		return 0, f.fault(err)
	}
	number, err := findNumber(f.json)
	if err != nil {
		return 0, f.fault(err)
	}
	return number, nil
}

// findNumber reads a block up to its number. Like readBlock it descends into one member "block"
// but not into nested ones, whose depth a malicious file could choose.
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
