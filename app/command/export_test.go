package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/family"
)

// A folder among the stores would be taken for a network, and no server would start.
func TestExportBesideNetworks(t *testing.T) {
	dir := smallNetwork(t)
	for _, folder := range []string{"networks", "networks/more", "networks/small/era"} {
		path := filepath.Join(dir, folder)
		e := Export{Data: dir, Export: family.Export{Network: "small", Format: "ere", Folder: path}}
		if err := e.Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "want a folder elsewhere") {
			t.Errorf("%s: %v, want a refusal", folder, err)
		}
	}
	status, err := ReadStatus(t.Context(), dir, "")
	if err != nil || len(status.Networks) != 1 {
		t.Errorf("%+v, %v: want one network", status.Networks, err)
	}
	e := Export{Data: dir, Export: family.Export{Network: "small", Format: "ere", Folder: filepath.Join(dir, "history")}}
	if err := e.Run(t.Context(), os.Stderr); err != nil {
		t.Errorf("beside networks: %v", err)
	}
}
