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

// TestSameLast exports blocks of an era, and then fewer and more of them up to the same last one. An ERE file has its name from that
// block, so all have the same name. Fewer blocks do not replace more.
func TestSameLast(t *testing.T) {
	a, _ := crossing(t)
	for _, format := range []era.Format{era.ERE, era.Era1} {
		folder := t.TempDir()
		o := export.Options{Network: "net", Format: format, Folder: folder, From: 5, To: to(20)}
		run(t, a, o)
		before := read(t, folder, names(t, folder)[1])
		o.From = 10
		if err := try(t.Context(), a, o); err == nil || !strings.Contains(err.Error(), "holds the blocks 5 to 20 of the same era; remove it") {
			t.Errorf("fewer blocks: got the error %v", err)
		}
		if all := names(t, folder); len(all) != 2 || !slices.Equal(read(t, folder, all[1]), before) {
			t.Errorf("the folder has %v, and the file has changed", all)
		}
		o.From = 0
		for range 2 {
			run(t, a, o)
			if all, sums := names(t, folder), strings.Fields(string(read(t, folder, era.ChecksumsName))); len(all) != 2 || len(sums) != 1 {
				t.Errorf("the folder has %v and %d checksums, want one file", all, len(sums))
			}
		}
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
