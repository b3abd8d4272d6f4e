package pebble

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestLockAdvises: a directory that cannot be locked is as one that cannot be opened: the error says what is wanted.
func TestLockAdvises(t *testing.T) {
	forbidden := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EACCES}
	}))
	if _, err := lockOnly(forbidden, "store"); err == nil || !strings.HasSuffix(err.Error(), "(want the user to whom the data directory belongs)") {
		t.Errorf("a lock: %v, expected what is wanted", err)
	}
}
