package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ashlar/filelock"
)

// claimName is the name of a file that becomes the manifest. Until then, a lock on it keeps other
// processes from writing to the folder. The lock ends with its process.
const claimName = manifestName + unfinished

// claimed is the exclusive right to write a snapshot to a folder.
type claimed struct {
	folder  string
	file    *os.File
	renamed bool // it is the manifest
}

func (c *claimed) path() string { return filepath.Join(c.folder, claimName) }

// claim takes the right to write to a folder. The folder may have got a manifest just before.
func claim(folder string) (*claimed, error) {
	for {
		c, held, err := tryClaim(folder)
		if held || err != nil {
			return c, err
		}
	}
}

// tryClaim is claim. It reports false if the owner of the file that it has locked was just done with it: the
// file was renamed or removed.
func tryClaim(folder string) (c *claimed, held bool, err error) {
	c = &claimed{folder: folder}
	if c.file, err = os.OpenFile(c.path(), os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, false, err
	}
	if err := filelock.Lock(c.file); err != nil {
		if errors.Is(err, filelock.ErrLocked) {
			err = fmt.Errorf("%w: another snapshot is being written to %s (want another folder, or wait until that one is complete)", ErrFolder, folder)
		} else {
			err = fmt.Errorf("lock %s: %w", c.path(), err)
		}
		return nil, false, errors.Join(err, c.file.Close())
	}
	locked, err := c.file.Stat()
	if err != nil {
		return nil, false, errors.Join(err, c.file.Close())
	}
	named, err := os.Stat(c.path())
	if err == nil && os.SameFile(locked, named) {
		return c, true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return nil, false, errors.Join(err, c.file.Close())
}

// complete writes the manifest. The folder can be claimed no longer, because it has a snapshot.
func (c *claimed) complete(manifest []byte) error {
	err := c.file.Truncate(0) // a process that was killed may have written to it
	if err == nil {
		_, err = c.file.Write(manifest)
	}
	if err == nil {
		err = c.file.Sync()
	}
	if err != nil {
		return err
	}
	if err := os.Rename(c.path(), filepath.Join(c.folder, manifestName)); err != nil {
		return err
	}
	c.renamed = true
	return nil
}

// release gives the right back.
func (c *claimed) release() {
	if !c.renamed {
		_ = os.Remove(c.path()) // if it stays, it is claimed like a new one
	}
	c.file.Close() // with the lock; a manifest is on the disk
}
