package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// ours matches the names of files of a snapshot but the manifest.
var ours = regexp.MustCompile(`^(headers|accounts|slots|blocks|bodies)-[0-9]{5,}-[0-9a-f]{16}\.zst(\.unfinished)?$|^manifest\.json\.unfinished$`)

// checkFolder refuses a folder with a snapshot or foreign files. It may have chunks of a
// snapshot that was interrupted.
func checkFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == manifestName:
			return fmt.Errorf("%w: %s has a snapshot already (want another folder)", ErrFolder, folder)
		case !ours.MatchString(name):
			return fmt.Errorf("%w: %s has %q, which is not of a snapshot (want an empty folder)", ErrFolder, folder, name)
		}
	}
	return nil
}

// removeChunks removes the chunks of an interrupted snapshot from a folder that is claimed.
func removeChunks(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); ours.MatchString(name) && name != claimName {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
