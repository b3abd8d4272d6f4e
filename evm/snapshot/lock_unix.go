//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package snapshot

import (
	"errors"
	"os"
	"syscall"
)

// errLocked means that a file is locked already.
var errLocked = syscall.EWOULDBLOCK

// lock locks a file, which no other process or part of this one may have locked, until it is closed.
func lock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
