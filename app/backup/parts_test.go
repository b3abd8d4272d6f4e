package backup

import (
	"os"
	"path/filepath"
	"testing"
)

// A killed backup leaves parts of files. They are removed with what no backup names.
func TestPartsAreRemoved(t *testing.T) {
	target := folder(t.TempDir())
	part := filepath.Join(target.path(objectsFolder), "ab", "abcd.123"+partSuffix)
	if err := os.MkdirAll(filepath.Dir(part), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, []byte(noise(1, 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	made := mustMake(t, target, source(t, "accounts", map[string]string{"file": "text"}))
	if _, err := Prune(t.Context(), target, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(part); !os.IsNotExist(err) {
		t.Errorf("%s: %v, expected that it is gone", part, err)
	}
	mustFetch(t, target, made.Name, map[string]map[string]string{"accounts": {"file": "text"}})
}
