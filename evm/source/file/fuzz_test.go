package file

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"ashlar/evm/era"
	"ashlar/evm/era/eratest"
	"ashlar/internal/memory"
)

// FuzzExport and FuzzHistory look for content that makes a decoder panic, or
// allocate out of proportion. Their seeds are files made by this package's tests.
func FuzzExport(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { readBounded(t, data) })
}

func FuzzHistory(f *testing.F) {
	for _, format := range []era.Format{era.Era1, era.ERE} {
		f.Add(encodeHistory(f, format, eratest.New(f, 0, 3, 3))[2:])
	}
	f.Add(encodeHistory(f, era.ERE, eratest.New(f, 8192, 3, 1))[2:])
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
