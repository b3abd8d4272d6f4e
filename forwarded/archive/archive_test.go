package archive

import (
	"fmt"
	"testing"

	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The size of the archive is bounded, however often the server is started again.
func TestSizeAfterRestarts(t *testing.T) {
	store, err := pebble.Open(pebble.Options{Path: "answers", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := Create(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	const size, starts, answerBytes = 1 << 20, 200, 10_000
	for start := range starts {
		a, err := Open(t.Context(), store, size, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Put(t.Context(), fmt.Sprint(start), make([]byte, answerBytes)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Open(t.Context(), store, size, false)
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for start := range starts {
		answer, ok, err := a.Get(t.Context(), fmt.Sprint(start))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			stored += len(answer)
		}
	}
	if most := size * (generations + 1) / generations; stored > most {
		t.Errorf("%d bytes are stored, expected at most %d", stored, most)
	}
}
