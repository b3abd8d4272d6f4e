package pebble

import (
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"

	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// DefaultReserve is the space that stays free on the disk: enough to write out all
	// memtables and to finish compactions.
	DefaultReserve = 512 << 20
	// reservePart of a small disk is reserved instead, if that is less.
	reservePart = 20
)

// space refuses writes while the disk has less free space than the reserve, so that what
// was accepted before can always be written out.
type space struct {
	fs      vfs.FS
	path    string
	reserve uint64
	log     *slog.Logger
	low     atomic.Bool // writes are refused
}

// check returns why writes are refused, or nil. Once refused, they are accepted again
// when an eighth more than the reserve is free.
func (s *space) check() error {
	usage, err := s.fs.GetDiskUsage(s.path)
	if err != nil {
		return nil // a filesystem that cannot say; a write finds out
	}
	low := s.low.Load()
	needed := reserved(s.reserve, usage)
	if low {
		needed += needed / 8
	}
	if usage.AvailBytes >= needed {
		if low && s.low.CompareAndSwap(true, false) {
			s.log.Info("the disk has space again; writes are accepted", "free_bytes", usage.AvailBytes)
		}
		return nil
	}
	if !low && s.low.CompareAndSwap(false, true) {
		s.log.Error("the disk is nearly full; reads go on, writes are refused until there is space", "free_bytes", usage.AvailBytes, "needed_bytes", needed)
	}
	return fmt.Errorf("%w: %d bytes are free, %d are needed: %w", kv.ErrFull, usage.AvailBytes, needed,
		&fs.PathError{Op: "write", Path: s.path, Err: syscall.ENOSPC})
}

// reserved returns how much of a disk stays free.
func reserved(reserve uint64, disk vfs.DiskUsage) uint64 {
	return min(reserve, disk.TotalBytes/reservePart)
}

// needsSpace adds to the error of a store that could not be opened on a full disk how much must be
// free: Pebble writes out the logs and begins a new one, and the store then refuses writes below the
// reserve.
func needsSpace(o Options, err error) error {
	if !kv.IsFull(err) {
		return err
	}
	needed := uint64(o.BufferBytes)
	if needed == 0 {
		needed = DefaultMemTableBytes
	}
	if names, err := o.FS.List(o.Path); err == nil {
		for _, name := range names {
			if info, err := o.FS.Stat(o.FS.PathJoin(o.Path, name)); err == nil && strings.HasSuffix(name, ".log") {
				needed += uint64(info.Size())
			}
		}
	}
	if disk, err := o.FS.GetDiskUsage(o.Path); err == nil {
		needed = max(needed, reserved(o.Reserve, disk))
	}
	return fmt.Errorf("%w; a store is opened with its logs written out: expected at least %d MiB of free space", nameFull(err), needed>>20+1)
}
