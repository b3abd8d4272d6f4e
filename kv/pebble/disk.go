package pebble

import (
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the filesystem as Pebble gets it: a change that fails is reported to
// the guard and never returns.
//
// Pebble answers some of these failures by ending the process, in a way that
// cannot be caught, and others by trying again for ever. A goroutine that is
// held here, at the failure itself, does neither. It holds no lock that readers
// need, because Pebble touches the disk without its central mutex.
type disk struct {
	vfs.FS
	guard *guard
}

// check returns if err is nil. Not all of the operating system's errors say of
// which file they are.
func (d *disk) check(op, path string, err error) {
	if err == nil {
		return
	}
	if named := (*fs.PathError)(nil); !errors.As(err, &named) {
		err = &fs.PathError{Op: op, Path: path, Err: err}
	}
	d.guard.fail(err)
	select {}
}

func (d *disk) file(path string, f vfs.File, err error) (vfs.File, error) {
	d.check("open", path, err)
	return &diskFile{File: f, path: path, disk: d}, nil
}

func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return d.file(name, f, err)
}

func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, category, o...)
	return d.file(name, f, err)
}

func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(oldname, newname, category)
	return d.file(newname, f, err)
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	return d.file(name, f, err)
}

func (d *disk) Link(oldname, newname string) error {
	d.check("link", newname, d.FS.Link(oldname, newname))
	return nil
}

func (d *disk) Rename(oldname, newname string) error {
	d.check("rename", newname, d.FS.Rename(oldname, newname))
	return nil
}

func (d *disk) Unwrap() vfs.FS { return d.FS }

// diskFile is a file or directory open for changes.
type diskFile struct {
	vfs.File
	path string
	disk *disk
}

func (f *diskFile) check(op string, err error) { f.disk.check(op, f.path, err) }

func (f *diskFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.check("write", err)
	return n, nil
}

func (f *diskFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	f.check("write", err)
	return n, nil
}

func (f *diskFile) Preallocate(offset, length int64) error {
	err := f.File.Preallocate(offset, length)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // by this filesystem; it finds the room when the file is written
	}
	f.check("reserve", err)
	return nil
}

func (f *diskFile) Sync() error {
	f.check("sync", f.File.Sync())
	return nil
}

func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	full, err = f.File.SyncTo(length)
	f.check("sync", err)
	return full, nil
}

func (f *diskFile) SyncData() error {
	f.check("sync", f.File.SyncData())
	return nil
}

func (f *diskFile) Close() error {
	f.check("close", f.File.Close())
	return nil
}
