package export_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/evm/era"
	"ashlar/evm/export"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/file"
)

// TestSuperseded: an era that was not complete is replaced by what holds more of it, and
// no other file is touched.
func TestSuperseded(t *testing.T) {
	a, _ := crossing(t)
	folder := t.TempDir()
	o := export.Options{Network: "net", Format: era.ERE, Folder: folder, To: to(10)}
	run(t, a, o)
	part := names(t, folder)[1]
	o.Network = "another"
	run(t, a, o)
	o.Network, o.To = "net", nil
	run(t, a, o)
	all := names(t, folder)
	if len(all) != 3 || slices.Contains(all, part) {
		t.Errorf("the folder has %v, and %s should be gone", all, part)
	}
	if sums := strings.Fields(string(read(t, folder, era.ChecksumsName))); len(sums) != 2 {
		t.Errorf("the list has %d checksums, want 2", len(sums))
	}
	for _, name := range all[:2] { // the list comes last
		if err := readWhole(filepath.Join(folder, name)); err != nil && era.IsName(name) {
			t.Error(err)
		}
	}
	o.To = to(10) // less than what is there
	if err := try(t.Context(), a, o); err == nil || !strings.Contains(err.Error(), "of the same era; remove it") {
		t.Errorf("got the error %v", err)
	}
	if !slices.Equal(names(t, folder), all) {
		t.Errorf("the folder has %v, want what was there, %v", names(t, folder), all)
	}
}

// TestListNotWritten: an export ends because the list of checksums cannot be written, as on a full disk. The next one writes
// the rest.
func TestListNotWritten(t *testing.T) {
	a, _ := crossing(t)
	folder := t.TempDir()
	o := export.Options{Network: "another", Format: era.ERE, Folder: folder}
	run(t, a, o)
	for _, last := range []*uint64{to(10), nil} { // the second file replaces the first one
		o.Network, o.To = "net", last
		inTheWay := filepath.Join(folder, "."+era.ChecksumsName+".partial")
		if err := os.MkdirAll(filepath.Join(inTheWay, "file"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := try(t.Context(), a, o); err == nil {
			t.Fatal("the list was written")
		}
		if err := os.RemoveAll(inTheWay); err != nil {
			t.Fatal(err)
		}
		run(t, a, o)
		files := slices.DeleteFunc(names(t, folder), func(name string) bool { return !era.IsName(name) })
		if sums := strings.Fields(string(read(t, folder, era.ChecksumsName))); len(files) != 2 || len(sums) != 2 {
			t.Errorf("the folder has %v and %d checksums, want 2", files, len(sums))
		}
	}
}

func readWhole(path string) error {
	f, err := file.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for err == nil {
		_, err = f.Next()
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// TestOtherFilesRefused: nothing is written beside files that are damaged or of another chain.
func TestOtherFilesRefused(t *testing.T) {
	a, _ := crossing(t)
	t.Run("damaged", func(t *testing.T) {
		folder := t.TempDir()
		o := export.Options{Network: "net", Format: era.ERE, Folder: folder}
		run(t, a, o)
		for _, name := range names(t, folder) {
			if era.IsName(name) {
				data := read(t, folder, name)
				data[len(data)/2] ^= 1
				if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := try(t.Context(), a, o); !errors.Is(err, era.ErrChecksum) {
			t.Errorf("got the error %v", err)
		}
	})
	t.Run("of another chain", func(t *testing.T) {
		folder := t.TempDir()
		demo := imported(t, ingesttest.Genesis(t))
		o := export.Options{Network: "net", Format: era.ERE, Folder: folder}
		run(t, demo, o)
		if err := try(t.Context(), a, o); err == nil || !strings.Contains(err.Error(), "is of another chain") {
			t.Errorf("got the error %v", err)
		}
	})
}
