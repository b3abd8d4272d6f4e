package backup

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A backup that is made after the clock was set back is the newest, nevertheless: it is what a
// restore takes, and Prune keeps it.
func TestClockSetBack(t *testing.T) {
	target := folder(t.TempDir())
	dir := source(t, "accounts", map[string]string{"file": "old"})
	early := mustMake(t, target, dir)
	m, err := Load(t.Context(), target, early.Name)
	if err != nil {
		t.Fatal(err)
	}
	m.Made = m.Made.Add(365 * 24 * time.Hour) // as if the clock had been wrong
	if _, err := m.save(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir.Dir, "file"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	made := mustMake(t, target, dir)
	want := map[string]map[string]string{"accounts": {"file": "new"}}
	mustFetch(t, target, "", want)
	if _, err := Prune(t.Context(), target, 1); err != nil {
		t.Fatal(err)
	}
	mustFetch(t, target, made.Name, want)
}
