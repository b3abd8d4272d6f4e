package export

import (
	"os"
	"path/filepath"
	"testing"

	"ashlar/evm/era"
)

// A file with a name may be replaced by one with other bytes. When the export is stopped between the list and the name, the
// next one accepts the file that is there, and it lists no other one in the end.
func TestReplacedIsListed(t *testing.T) {
	folder := t.TempDir()
	const name = "net-00000-00000001-noproofs.ere"
	path := filepath.Join(folder, name)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("fewer blocks")
	list, err := readSums(folder)
	if err != nil {
		t.Fatal(err)
	}
	if list.enter(name, list.sums[name]) {
		t.Error("the same bytes replace others")
	}
	if !list.enter(name, era.Checksum{1}) {
		t.Error("other bytes replace none")
	}
	if err := list.write(); err != nil {
		t.Fatal(err)
	}
	if _, err := readSums(folder); err != nil {
		t.Errorf("with the file that is there: %v", err)
	}
	list.replaced = nil
	if err := list.write(); err != nil {
		t.Fatal(err)
	}
	if _, err := readSums(folder); err == nil {
		t.Error("the replaced file is still listed")
	}
}
