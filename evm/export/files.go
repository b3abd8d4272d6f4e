package export

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ashlar/evm/era"

	"github.com/ethereum/go-ethereum/common"
)

// writeBuffer is how much of a file is written at a time.
const writeBuffer = 1 << 20

// writeEra writes the file of the blocks of one era, and enters it in the list.
func (e *Exporter) writeEra(ctx context.Context, from era.Blocks, number uint64, part era.Range, list *sums) error {
	name := era.Name{Network: e.network, Era: number, Format: e.format}
	if e.format == era.ERE {
		name.Profiles = []string{era.NoProofs}
	}
	var sum era.Checksum
	file, err := create(e.folder, name.String(), func(out io.Writer) (final string, err error) {
		hash := sha256.New()
		buffered := bufio.NewWriterSize(io.MultiWriter(out, hash), writeBuffer)
		id, err := era.Write(ctx, buffered, e.format, from, part)
		if err == nil {
			err = buffered.Flush()
		}
		sum, name.ID = era.Checksum(hash.Sum(nil)), [4]byte(id[:4])
		return name.String(), err
	})
	if err != nil {
		return err
	}
	defer file.discard()
	old, err := e.superseded(ctx, name, part)
	if err != nil {
		return err
	}
	replaces := list.enter(name.String(), sum)
	if err := list.write(); err != nil { // before the file has its name: one that is not listed would be refused
		return err
	}
	if err := file.keep(); err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
		delete(list.sums, filepath.Base(path))
	}
	if list.replaced = nil; !replaces && len(old) == 0 {
		return nil
	}
	return list.write()
}

// superseded returns the files of the same era that hold fewer of the same blocks: such
// as that of an era that was not complete when it was exported. Any other file of the
// era is an error. One with the name of the new file, which that replaces, is not returned.
func (e *Exporter) superseded(ctx context.Context, name era.Name, part era.Range) (old []string, err error) {
	entries, err := os.ReadDir(e.folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		other, ok := era.ParseName(entry.Name())
		if !ok || other.Network != name.Network || other.Era != name.Era || other.Format != name.Format {
			continue
		}
		path := filepath.Join(e.folder, entry.Name())
		blocks, last, err := lastOf(path)
		if err != nil {
			return nil, err
		}
		if blocks.First < part.First || blocks.Last > part.Last {
			return nil, fmt.Errorf("%s holds the blocks %d to %d of the same era; remove it, or export to another folder", path, blocks.First, blocks.Last)
		}
		header, err := e.archive.Header(ctx, blocks.Last)
		if err != nil {
			return nil, err
		}
		if header.Hash != last {
			return nil, fmt.Errorf("%s is of another chain: its block %d is %s, here it is %s; remove it, or export to another folder", path, blocks.Last, last, header.Hash)
		}
		if entry.Name() != name.String() {
			old = append(old, path)
		}
	}
	return old, nil
}

// lastOf opens a history file and returns which blocks it holds, and the hash of the last.
func lastOf(path string) (blocks era.Range, hash common.Hash, err error) {
	f, err := os.Open(path)
	if err != nil {
		return blocks, hash, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return blocks, hash, err
	}
	r, err := era.Open(f, info.Size())
	if err != nil {
		return blocks, hash, fmt.Errorf("%s: %w", path, err)
	}
	return r.Range(), r.LastHash(), nil
}

// unfinished is a file that does not have its name yet.
type unfinished struct {
	folder, temporary, final string
}

// create writes a file under a temporary name, which begins with a dot, and flushes it
// to the disk. write returns the name that the file is to have.
func create(folder, name string, write func(out io.Writer) (final string, err error)) (*unfinished, error) {
	u := &unfinished{folder: folder, temporary: filepath.Join(folder, "."+name+".partial")}
	f, err := os.Create(u.temporary)
	if err != nil {
		return nil, err
	}
	final, err := write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		u.discard()
		return nil, err
	}
	u.final = filepath.Join(folder, final)
	return u, nil
}

// keep gives the file its name, in a way that survives a crash.
func (u *unfinished) keep() error {
	if err := os.Rename(u.temporary, u.final); err != nil {
		return err
	}
	return syncFolder(u.folder)
}

// discard removes the file, unless it has its name.
func (u *unfinished) discard() { _ = os.Remove(u.temporary) }

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sums are the checksums of the history files in a folder, by name.
type sums struct {
	folder   string
	sums     map[string]era.Checksum
	replaced *era.Checksum // of a file that another one of the same name is to replace; nil: none is
}

// enter enters the checksum of a file that is to get a name. It reports whether that replaces a file with other
// bytes, whose checksum stays in the list until replaced is nil: the file may still be there if the export is stopped.
func (s *sums) enter(name string, sum era.Checksum) (replaces bool) {
	before, there := s.sums[name]
	s.sums[name] = sum
	if replaces = there && before != sum; replaces {
		s.replaced = &before
	}
	return replaces
}

// readSums computes the checksums of the history files that are in a folder. One that
// is not as the folder's list says is refused: a new list would say that it is right.
func readSums(folder string) (*sums, error) {
	s := &sums{folder: folder, sums: make(map[string]era.Checksum)}
	listed, err := era.ReadChecksums(folder)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !era.IsName(name) || strings.HasPrefix(name, ".") {
			continue
		}
		sum, err := sumOf(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if listed != nil {
			if err := listed.Check(name, sum); err != nil {
				return nil, fmt.Errorf("%s: %w; remove it, or export to another folder", filepath.Join(folder, name), err)
			}
		}
		s.sums[name] = sum
	}
	return s, nil
}

func sumOf(path string) (sum era.Checksum, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	return era.Sum(f)
}

// write writes the list in geth's form: the checksums alone, in the order of the names.
func (s *sums) write() error {
	file, err := create(s.folder, era.ChecksumsName, func(out io.Writer) (string, error) {
		var list strings.Builder
		for _, name := range slices.Sorted(maps.Keys(s.sums)) {
			fmt.Fprintln(&list, s.sums[name])
		}
		if s.replaced != nil {
			fmt.Fprintln(&list, *s.replaced)
		}
		_, err := io.WriteString(out, list.String())
		return era.ChecksumsName, err
	})
	if err != nil {
		return err
	}
	defer file.discard()
	return file.keep()
}
