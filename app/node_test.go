package app

import (
	"testing"

	"ashlar/app/store"
)

// TestNodeNumber gives each process a number of its own, and the same again.
func TestNodeNumber(t *testing.T) {
	opened, err := store.Dir(t.TempDir()).OpenAccounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for range 2 {
		for i, name := range []string{"one 127.0.0.1:1", "two 127.0.0.1:1", "one 127.0.0.1:2"} {
			number, err := nodeNumber(t.Context(), opened, name)
			if err != nil || number != uint16(i+1) {
				t.Errorf("process %q has number %d, %v, expected %d", name, number, err, i+1)
			}
		}
	}
}
