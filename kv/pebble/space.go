package pebble

import (
	"fmt"
	"io/fs"
	"log/slog"
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
	needed := min(s.reserve, usage.TotalBytes/reservePart)
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
