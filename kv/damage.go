package kv

import (
	"errors"
	"io/fs"
	"syscall"
)

// IsFull reports whether an error of the system means that there is no space, a used up quota included.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// IsDamage reports whether an error of opening a store in a directory is about the store's own
// files. It is not if there is no store, another process has it open, something else is in its
// place, or the operating system does not let it be opened.
func IsDamage(err error) bool {
	if err == nil {
		return false
	}
	for _, cause := range []error{ErrNotFound, ErrInUse, ErrForeign, ErrFull, fs.ErrPermission, syscall.EROFS, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, cause) {
			return false
		}
	}
	return true
}
