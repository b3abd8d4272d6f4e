package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spaceRetry is how long a change waits before it is tried again on a full disk, or while too many
// files are open.
const spaceRetry = 100 * time.Millisecond

// disk is the filesystem as Pebble sees it. A change that fails is reported to the guard
// and never returns. A change that finds the disk full waits for space and then continues,
// because the part that failed had no effect. So does one that cannot open a file because too many
// are open. This does not apply to a sync: after a failed sync, the state of the disk is unknown.
//
// Pebble reacts to some of these failures by ending the process, and to others by retrying
// for ever. Blocking its goroutine at the failure prevents both. The goroutine holds no
// lock that readers need, because Pebble accesses the disk without its central mutex.
//
// A checkpoint is not part of the store: a failure to write one is an error, and leaves
// the store as it is.
type disk struct {
	vfs.FS
	guard *guard
	apart string // the folder of checkpoints, or "" if nothing is apart
}

// isApart reports whether a path is within the folder of checkpoints.
func (d *disk) isApart(path string) bool {
	rest, ok := strings.CutPrefix(path, d.apart)
	return ok && d.apart != "" && (rest == "" || os.IsPathSeparator(rest[0]))
}

// check returns if err is nil. Not all of the operating system's errors name the file.
func (d *disk) check(op, path string, err error) {
	if err == nil {
		return
	}
	d.guard.fail(named(op, path, err))
	select {}
}

// named is an error with the path of the file, without the stack trace that Pebble adds.
func named(op, path string, err error) error {
	if has := (*fs.PathError)(nil); errors.As(err, &has) {
		return has
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// try makes a change, as soon as there is space for it and its file can be opened.
func (d *disk) try(op, path string, change func() error) {
	err := d.guard.change(change)
	if passes(err) {
		d.guard.beginWaiting(named(op, path, err))
		for passes(err) {
			select {
			case <-d.guard.failed:
				select {}
			case <-time.After(spaceRetry):
			}
			err = d.guard.change(change)
		}
		defer d.guard.endWaiting()
	}
	d.check(op, path, err)
}

// open opens a file to change it.
func (d *disk) open(path string, open func() (vfs.File, error)) (f vfs.File, err error) {
	if d.isApart(path) {
		return open()
	}
	d.try("open", path, func() (err error) {
		f, err = open()
		return err
	})
	return &diskFile{File: f, path: path, disk: d}, nil
}

func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, o...) })
}

func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(newname, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.OpenDir(name) })
}

func (d *disk) Link(oldname, newname string) error {
	if d.isApart(newname) {
		return withoutLinks(d.FS.Link(oldname, newname))
	}
	d.try("link", newname, func() error { return d.FS.Link(oldname, newname) })
	return nil
}

// withoutLinks turns EPERM, by which Linux says that a filesystem has no hard links, into an error after which Pebble copies the file.
// Pebble takes EPERM for a missing permission, and gives up.
func withoutLinks(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("%w: %v", errors.ErrUnsupported, err)
	}
	return err
}

func (d *disk) Rename(oldname, newname string) error {
	if d.isApart(newname) {
		return d.FS.Rename(oldname, newname)
	}
	d.try("rename", newname, func() error { return d.FS.Rename(oldname, newname) })
	return nil
}

func (d *disk) Unwrap() vfs.FS { return d.FS }

// Lock takes nothing, because the store holds the directory's lock for as long as Pebble may write.
// A Pebble that is stuck would never release it.
func (d *disk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// diskFile is a file or directory open for changes.
type diskFile struct {
	vfs.File
	path string
	disk *disk
}

func (f *diskFile) check(op string, err error) { f.disk.check(op, f.path, err) }

func (f *diskFile) try(op string, change func() error) { f.disk.try(op, f.path, change) }

func (f *diskFile) Write(p []byte) (written int, err error) {
	f.try("write", func() error {
		n, err := f.File.Write(p[written:]) // a full disk may take a part
		written += n
		return err
	})
	return written, nil
}

func (f *diskFile) WriteAt(p []byte, at int64) (written int, err error) {
	f.try("write", func() error {
		n, err := f.File.WriteAt(p, at)
		written = n
		return err
	})
	return written, nil
}

func (f *diskFile) Preallocate(offset, length int64) error {
	f.try("reserve", func() error {
		err := f.File.Preallocate(offset, length)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil // not supported by this filesystem; space is allocated on writing
		}
		return err
	})
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
