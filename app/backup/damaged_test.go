package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// damageManifest cuts the manifest of a backup in a folder.
func damageManifest(t *testing.T, target folder, name string) (path string) {
	t.Helper()
	path = filepath.Join(string(target), backupsFolder, name+suffix)
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	return path
}

// A damaged manifest of the last backup does not end all backups: the next one is made, stores nothing twice, and is the newest,
// even if the clock was set back. Old ones are removed once enough newer ones are whole, or after the file was removed as the
// error says.
func TestDamagedManifest(t *testing.T) {
	files := map[string]string{"file": "content"}
	want := map[string]map[string]string{"accounts": files}
	dir := source(t, "accounts", files)
	for _, byHand := range []bool{false, true} {
		target := folder(t.TempDir())
		mustMake(t, target, dir)
		last := mustMake(t, target, dir)
		m, err := Load(t.Context(), target, last.Name)
		if err != nil {
			t.Fatal(err)
		}
		m.Made = m.Made.Add(365 * 24 * time.Hour) // as if the clock had been wrong
		damaged, err := m.save(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		path := damageManifest(t, target, damaged)
		if made := mustMake(t, target, dir); made.Stored != 0 {
			t.Errorf("%d bytes were stored again", made.Stored)
		}
		mustFetch(t, target, "", want)
		_, err = Prune(t.Context(), target, 2)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "remove "+backupsFolder+damaged+suffix+" from "+target.String()) {
			t.Errorf("removal of old backups: %v, expected an error that says what to do", err)
		}
		removed := 3
		if byHand {
			removed = 1
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else {
			mustMake(t, target, dir)
		}
		if n, err := Prune(t.Context(), target, 2); err != nil || n != removed {
			t.Errorf("%d old backups were removed, %v, expected %d", n, err, removed)
		}
		mustFetch(t, target, "", want)
	}
}
