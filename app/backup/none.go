package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// ErrNoBackup is returned if a target does not have the backup that was asked for.
var ErrNoBackup = errors.New("no such backup")

// None returns an ErrNoBackup that says that a target has no backups at all, and what may be meant instead.
func None(t Target) error {
	const want = "want a folder or prefix that ashlar backup wrote"
	dir, ok := Folder(t)
	if !ok {
		return fmt.Errorf("%w: %s has none (%s)", ErrNoBackup, t, want)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s does not exist (%s); is its disk mounted?", ErrNoBackup, t, want)
	}
	places := []string{filepath.Dir(filepath.Clean(dir))}
	for _, entry := range entries {
		places = append(places, filepath.Join(dir, entry.Name()))
	}
	if i := slices.IndexFunc(places, looksLikeTarget); i >= 0 {
		return fmt.Errorf("%w: %s has none (%s); did you mean %s?", ErrNoBackup, t, want, places[i])
	}
	return fmt.Errorf("%w: %s has none (%s)", ErrNoBackup, t, want)
}

// looksLikeTarget reports whether a directory has the folders of a target.
func looksLikeTarget(dir string) bool {
	for _, folder := range []string{objectsFolder, backupsFolder} {
		if info, err := os.Stat(filepath.Join(dir, folder)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// CheckKept returns an error if a target has no backups although good ones were made there, according to the record in a data
// directory. Its disk is probably not mounted: a backup would go to the disk below, and be taken for one on another disk.
func CheckKept(ctx context.Context, data string, t Target) error {
	path, _, err := recordOf(data, t)
	if err != nil {
		return err
	}
	r, err := readRecord(path)
	if err != nil {
		return nil // there was none, or it cannot be read, and is replaced
	}
	var last time.Time
	for _, o := range r.Stores {
		if o.Made.After(last) {
			last = o.Made
		}
	}
	names, err := Names(ctx, t)
	if err != nil || len(names) > 0 || last.IsZero() {
		return err
	}
	return fmt.Errorf("%s has no backups, but one was made there at %s: is its disk mounted? If they were removed, remove %s, too, and run the same command again",
		t, last.Format(time.RFC3339), path)
}
