package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Before a backup is listed, all names that lead to its contents are durable: those of the target and of its folders, also if they
// are new, and those of contents that a killed backup left.
func TestNamesAreDurable(t *testing.T) {
	above := t.TempDir()
	target := folder(filepath.Join(above, "new", "target"))
	left := sha256.Sum256([]byte("left"))
	killed := target.path(object(hex.EncodeToString(left[:])))
	if err := errors.Join(os.MkdirAll(filepath.Dir(killed), 0o700), os.WriteFile(killed, []byte("left"), 0o600)); err != nil {
		t.Fatal(err)
	}
	other := folder(filepath.Join(above, "also", "new"))
	for _, target := range []folder{target, other} {
		synced := recordSynced(t, target)
		mustMake(t, target, source(t, "accounts", map[string]string{"a": "left", "b": noise(1, 100)}))
		folders, err := filepath.Glob(filepath.Join(string(target), objectsFolder, "*"))
		if err != nil || len(folders) != 2 {
			t.Fatalf("%v, %v, expected two folders of contents", folders, err)
		}
		want := append(folders, target.path(objectsFolder))
		if target == other {
			want = append(want, string(target), filepath.Dir(string(target)), above)
		}
		for _, dir := range want {
			if !slices.Contains(synced(), dir) {
				t.Errorf("the names in %s are not durable when the backup is listed", dir)
			}
		}
	}
}

// recordSynced returns a function that returns the directories that were made durable before a target listed a backup.
func recordSynced(t *testing.T, target folder) func() []string {
	var mu sync.Mutex
	var dirs []string
	real := syncDir
	t.Cleanup(func() { syncDir = real })
	syncDir = func(dir string) error {
		mu.Lock()
		defer mu.Unlock()
		if listed, _ := filepath.Glob(filepath.Join(target.path(backupsFolder), "*"+suffix)); len(listed) == 0 {
			dirs = append(dirs, dir)
		}
		return real(dir)
	}
	return func() []string { return dirs }
}
