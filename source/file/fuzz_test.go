package file

import (
	"bytes"
	"runtime/metrics"
	"testing"
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
	before := allocated()
	blocks, err := readAll(t, data)
	if err == nil && len(blocks) == 0 {
		t.Error("no blocks and no error")
	}
	if got, most := allocated()-before, uint64(buffers+decoded*unzipped*len(data)); got > most {
		t.Errorf("%d bytes allocated for %d bytes of a file, want at most %d", got, len(data), most)
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
