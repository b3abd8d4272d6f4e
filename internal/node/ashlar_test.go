package node

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A binary takes the place of an older one in the same folder, which stays as it is where it is
// linked to or runs.
func TestLinkLeavesTheOlderBinary(t *testing.T) {
	kept, dir := t.TempDir(), t.TempDir()
	built := filepath.Join(kept, "ashlar")
	write := func(text string) {
		t.Helper()
		next := filepath.Join(kept, "next")
		if err := os.WriteFile(next, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, built); err != nil { // as go build does
			t.Fatal(err)
		}
	}
	for _, text := range []string{"old", "new", "new"} {
		write(text)
		before, err := os.Open(built)
		if err != nil {
			t.Fatal(err)
		}
		defer before.Close()
		for range 2 {
			bin, err := link(built, dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(bin)
			if err != nil || string(got) != text {
				t.Errorf("the binary is %q, %v, want %q", got, err, text)
			}
			a, errA := os.Stat(bin)
			b, errB := before.Stat()
			if errA != nil || errB != nil || !os.SameFile(a, b) {
				t.Errorf("%q is a copy, want a link to the kept binary", text)
			}
		}
	}
}

// Processes that put the binary into one folder at once do not write to the kept one.
func TestLinkAtOnce(t *testing.T) {
	dir := t.TempDir()
	built := filepath.Join(t.TempDir(), "ashlar")
	if err := os.WriteFile(built, []byte("kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(built, before, before); err != nil {
		t.Fatal(err)
	}
	var linking sync.WaitGroup
	for range 8 {
		linking.Go(func() {
			for range 200 {
				if _, err := link(built, dir); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	linking.Wait()
	text, err := os.ReadFile(built)
	if err != nil || string(text) != "kept" {
		t.Errorf("the kept binary is %q, %v", text, err)
	}
	if at, err := os.Stat(built); err != nil || !at.ModTime().Equal(before) {
		t.Errorf("the kept binary was written, %v", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != "ashlar" {
		t.Errorf("the folder has %v, %v, want the binary alone", files, err)
	}
}
