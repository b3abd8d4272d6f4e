package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A removal that was killed while it deleted is completed by the same command, which gives the space free.
func TestRemoveNetworkAgain(t *testing.T) {
	data := t.TempDir()
	rest := filepath.Join(data, "networks", ".removed-old")
	if err := os.MkdirAll(rest, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rest, "000001.sst"), []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RemoveNetwork(t.Context(), data, "old"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(rest)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := RemoveNetwork(t.Context(), data, "old"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("once more: %v, expected not found", err)
	}
}
