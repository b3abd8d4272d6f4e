//go:build unix

package app

import "syscall"

// openFiles returns how many files and sockets this process may have open, 0 if that is not known. Go has
// raised the limit as far as the process may.
func openFiles() uint64 {
	var most syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most) != nil {
		return 0
	}
	return uint64(most.Cur) // signed on some systems
}
