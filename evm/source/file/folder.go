package file

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ashlar/evm/era"
)

// Listed is a file to read, in the place where it is to be read.
type Listed struct {
	Path    string
	History bool // a history file, which says which blocks it holds
	Blocks  era.Range
}

// List lists the files that paths name, in the order of the paths. A folder stands for
// the history files in it, in the order of their blocks; other files in it, and folders
// below it, are left out. Content decides what a file is, except that in a folder only
// names that end with .era1 or .ere are looked at.
func List(paths ...string) ([]Listed, error) {
	var all []Listed
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("chain file: %w", err)
		}
		list := listFile
		if info.IsDir() {
			list = listFolder
		}
		found, err := list(path)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func listFile(path string) ([]Listed, error) {
	l, err := look(path)
	return []Listed{l}, err
}

func listFolder(folder string) ([]Listed, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("chain file: %w", err)
	}
	var files []Listed
	for _, entry := range entries {
		if entry.IsDir() || !era.IsName(entry.Name()) || entry.Name()[0] == '.' {
			continue
		}
		l, err := look(filepath.Join(folder, entry.Name()))
		if err == nil && !l.History {
			err = fmt.Errorf("chain file %s: is not a history file, as its name says; want one, or another name", l.Path)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, l)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("chain file %s: the folder has no history files; want some whose names end with .era1 or .ere, or the files themselves", folder)
	}
	slices.SortStableFunc(files, func(a, b Listed) int { return cmp.Compare(a.Blocks.First, b.Blocks.First) })
	for i := 1; i < len(files); i++ {
		if a, b := files[i-1], files[i]; b.Blocks.First <= a.Blocks.Last {
			return nil, fmt.Errorf("chain file %s: holds block %d, which %s holds too; want each block once in a folder", b.Path, b.Blocks.First, filepath.Base(a.Path))
		}
	}
	return files, nil
}

// look opens a file to see whether it is a history file and which blocks it holds.
func look(path string) (l Listed, err error) {
	l.Path = path
	f, err := os.Open(path)
	if err != nil {
		return l, fmt.Errorf("chain file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return l, nil // Open says what is wrong with it
	}
	var magic [2]byte
	if err == nil {
		_, err = f.ReadAt(magic[:], 0)
	}
	if err != nil || magic != historyMagic {
		return l, nil // Open says what is wrong with it, if anything
	}
	l.History = true
	if l.Blocks, err = era.Peek(f, info.Size()); err != nil {
		// A whole check says where the file is damaged.
		if _, at := era.Open(f, info.Size()); at != nil {
			err = placed(at)
		}
		return l, named(path, err)
	}
	return l, nil
}

// ErrGap says that blocks are missing between two files.
var ErrGap = errors.New("blocks are missing")

// CheckGaps returns an ErrGap if blocks are missing between history files that follow
// each other, unless they are at or below head: then they are there already.
func CheckGaps(files []Listed, head uint64) error {
	for i := 1; i < len(files); i++ {
		a, b := files[i-1], files[i]
		if !a.History || !b.History || b.Blocks.First <= max(a.Blocks.Last, head)+1 {
			continue
		}
		return fmt.Errorf("%w: no file has the blocks %d to %d: %s ends with block %d, %s begins with block %d",
			ErrGap, max(a.Blocks.Last, head)+1, b.Blocks.First-1, a.Path, a.Blocks.Last, b.Path, b.Blocks.First)
	}
	return nil
}
