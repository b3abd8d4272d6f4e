package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestVerifyWithoutPermission verifies a sound network as a user who may only read its files.
func TestVerifyWithoutPermission(t *testing.T) {
	dir := smallNetwork(t)
	if err := os.Chmod(filepath.Join(dir, "networks", "small", "LOCK"), 0o444); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0 // who may write all files
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	verified := make(chan error)
	go func() {
		const nobody = 65534
		runtime.LockOSThread() // the thread ends with this function
		if root {
			if err := syscall.Setfsuid(nobody); err != nil {
				verified <- err
				return
			}
		}
		text, err := runVerify(t.Context(), Verify{Data: dir})
		if text != "" {
			err = fmt.Errorf("%v, with the verdict %q", err, text)
		}
		verified <- err
	}()
	if err := <-verified; !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, expected no verdict and %v", err, fs.ErrPermission)
	}
}
