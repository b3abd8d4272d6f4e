package node

import (
	"os"
	"path/filepath"
	"testing"
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
