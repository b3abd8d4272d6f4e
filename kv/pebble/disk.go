package pebble

import "github.com/cockroachdb/pebble/v2/vfs"

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

// check returns if err is nil.
func (d *disk) check(err error) {
	if err != nil {
		d.guard.fail(err)
		select {}
	}
}

func (d *disk) file(f vfs.File, err error) (vfs.File, error) {
	d.check(err)
	return &diskFile{File: f, disk: d}, nil
}

func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.Create(name, category))
}

func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.file(d.FS.OpenReadWrite(name, category, o...))
}

func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.ReuseForWrite(oldname, newname, category))
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	return d.file(d.FS.OpenDir(name))
}

func (d *disk) Link(oldname, newname string) error {
	d.check(d.FS.Link(oldname, newname))
	return nil
}

func (d *disk) Rename(oldname, newname string) error {
	d.check(d.FS.Rename(oldname, newname))
	return nil
}

func (d *disk) Unwrap() vfs.FS { return d.FS }

// diskFile is a file or directory open for changes.
type diskFile struct {
	vfs.File
	disk *disk
}

func (f *diskFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.disk.check(err)
	return n, nil
}

func (f *diskFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	f.disk.check(err)
	return n, nil
}

func (f *diskFile) Preallocate(offset, length int64) error {
	f.disk.check(f.File.Preallocate(offset, length))
	return nil
}

func (f *diskFile) Sync() error {
	f.disk.check(f.File.Sync())
	return nil
}

func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	full, err = f.File.SyncTo(length)
	f.disk.check(err)
	return full, nil
}

func (f *diskFile) SyncData() error {
	f.disk.check(f.File.SyncData())
	return nil
}

func (f *diskFile) Close() error {
	f.disk.check(f.File.Close())
	return nil
}
