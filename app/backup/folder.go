package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// partSuffix ends the names of files that are not complete.
const partSuffix = ".part"

// folder is a target on a filesystem.
type folder string

func (f folder) String() string { return string(f) }

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// List implements Target. It includes the parts of files that a killed process left, so that Prune
// removes them.
func (f folder) List(ctx context.Context, below string, found func(name string, bytes int64)) error {
	err := filepath.WalkDir(f.path(below), func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(string(f), path)
		if err == nil {
			found(filepath.ToSlash(name), info.Size())
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("target %q is not a directory (want a folder, or s3://BUCKET/PREFIX)", string(f))
	}
	return err
}

// Put implements Target.
func (f folder) Put(ctx context.Context, name string, content io.Reader, bytes int64) error {
	path := f.path(name)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return writeFile(ctx, path, content, bytes)
}

// makeDir makes a directory, and those above it that do not exist, durably.
func makeDir(dir string) error {
	var grown []string // directories that get another one
	for made := dir; ; made = filepath.Dir(made) {
		if _, err := os.Stat(made); err == nil || made == filepath.Dir(made) {
			break
		}
		grown = append(grown, filepath.Dir(made))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, above := range grown {
		if err := syncDir(above); err != nil {
			return err
		}
	}
	return nil
}

// settle makes the names of all objects durable, also of those whose writer was killed before it did.
func (f folder) settle(ctx context.Context) error {
	return filepath.WalkDir(f.path(objectsFolder), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no store has a file, or another process has removed it
		}
		if err = errors.Join(err, ctx.Err()); err != nil || !entry.IsDir() {
			return err
		}
		return syncDir(path)
	})
}

// writeFile writes a file that gets its name when all of it is on the disk. It fails if
// content does not have the given size.
func writeFile(ctx context.Context, path string, content io.Reader, bytes int64) (err error) {
	// Two writers of the same content use two files; the last rename wins.
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+partSuffix)
	if err != nil {
		return err
	}
	written, err := io.Copy(part, io.LimitReader(cancelable{ctx, content}, bytes+1))
	if err == nil && written != bytes {
		err = fmt.Errorf("write %s: the content has another size than %d bytes", path, bytes)
	}
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable. Tests replace it.
var syncDir = func(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get implements Target.
func (f folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	file, err := os.Open(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNoBackup, err)
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Remove implements Target.
func (f folder) Remove(_ context.Context, name string) error { return os.Remove(f.path(name)) }

// cancelable is a reader that fails when its context is done.
type cancelable struct {
	ctx context.Context
	io.Reader
}

func (c cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}
