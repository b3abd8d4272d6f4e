package file

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"ashlar/internal/memory"
)

// FuzzExport and FuzzEra1 look for content that makes a decoder panic, or
// allocate out of proportion. Their seeds are files made by this package's tests.
func FuzzExport(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { readBounded(t, data) })
}

func FuzzEra1(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		readBounded(t, append([]byte("e2"), data...))
	})
}

// readBounded reads data and checks what was allocated meanwhile, freed or not:
// no more than the readers' own buffers, and for each byte what it may become
// when it is unzipped, times what a transaction of ten bytes costs once decoded.
func readBounded(t *testing.T, data []byte) {
	const buffers, decoded = 8 << 20, 200
	unzipped := 25 // at most, of one byte by snappy
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		unzipped = 1100 // by gzip
	} else if !bytes.HasPrefix(data, []byte("e2")) {
		unzipped = 1
	}
	memory.Within(t, buffers+decoded*unzipped*len(data), func() {
		blocks, err := readAll(t, data)
		var at *Error
		switch {
		case err == nil && len(blocks) == 0:
			t.Error("no blocks and no error")
		case err == nil:
		case !strings.Contains(err.Error(), "chain file memory"):
			t.Errorf("%v does not name the file", err)
		case errors.As(err, &at) && (at.Offset < 0 || at.Offset > int64(len(data)) && !at.Unzipped || at.Block != len(blocks) && len(blocks) > 0):
			t.Errorf("%v after %d blocks of a file of %d bytes", err, len(blocks), len(data))
		}
	})
}

// FuzzEntry reads the entries of an e2store file one after the other, and what is
// in them, which FuzzEra1 does of well-formed archives only.
func FuzzEntry(f *testing.F) {
	data := encodeEra1(f, makeBlocks(f, 0, 2))
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte{3, 0, 255, 255, 255, 255, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		memory.Within(t, 1<<20+100*25*len(data), func() { checkEntries(t, data) })
	})
}

func checkEntries(t *testing.T, data []byte) {
	store := newE2store(bytes.NewReader(data), int64(len(data)))
	for offset := int64(0); ; {
		e, err := store.at(offset)
		if err != nil {
			return
		}
		if e.end() <= offset || e.end() > store.size {
			t.Fatalf("the entry at %d ends at %d of %d", offset, e.end(), store.size)
		}
		const most = 1 << 20
		var out bytes.Buffer
		if err := store.unzip(&out, e, most); err == nil && out.Len() > most {
			t.Fatalf("%d bytes of an entry that may have %d", out.Len(), most)
		}
		if _, err := store.word(e); err == nil && e.length != 32 {
			t.Fatalf("a word of %d bytes", e.length)
		}
		offset = e.end()
	}
}
