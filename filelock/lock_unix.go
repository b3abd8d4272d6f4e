//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package filelock locks files and directories between processes.
package filelock

import (
	"errors"
	"os"
	"syscall"
)

// ErrLocked means that a file is locked already.
var ErrLocked error = syscall.EWOULDBLOCK

// Lock locks a file or a directory, which no other process or part of this one may have locked, until it is closed. The end of the
// process closes it, too.
func Lock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
