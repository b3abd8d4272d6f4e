//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package control

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a directory until the file is closed or the process ends. It reports whether another server has it locked. On a
// file system without such locks, as some of networks are, nothing is locked.
func lock(dir *os.File) (taken bool) {
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return errors.Is(err, syscall.EWOULDBLOCK)
		}
	}
}
