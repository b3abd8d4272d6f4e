package pebble

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Modes of a private store: only its user may read it.
const (
	privateDir  = 0o700
	privateFile = 0o600
)

// privateFS is the disk, with files that only their user may read.
type privateFS struct{ vfs.FS }

func private(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return f, err
	}
	if err := os.Chmod(name, privateFile); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, category)
	return private(f, name, err)
}

func (p privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := p.FS.OpenReadWrite(name, category, o...)
	return private(f, name, err)
}

func (p privateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(oldname, newname, category)
	return private(f, newname, err)
}

// MkdirAll makes parents with the modes given, and the directory itself private.
func (p privateFS) MkdirAll(dir string, perm os.FileMode) error {
	if err := p.FS.MkdirAll(filepath.Dir(dir), perm); err != nil {
		return err
	}
	return p.FS.MkdirAll(dir, privateDir)
}

func (p privateFS) Unwrap() vfs.FS { return p.FS }

// makePrivate changes the modes of a store that an earlier version made. Another process may release a copy of the store
// meanwhile, so files may vanish.
func makePrivate(dir string) error {
	if err := os.Chmod(dir, privateDir); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreGone(err)
		case entry.IsDir():
			return ignoreGone(os.Chmod(path, privateDir))
		case entry.Type().IsRegular():
			return ignoreGone(os.Chmod(path, privateFile))
		}
		return nil
	})
}
