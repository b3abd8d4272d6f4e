package feeder

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"ashlar/internal/memory"
)

// FuzzFile searches for contents that make the reader panic, allocate out of proportion, or return
// blocks that do not form a chain.
func FuzzFile(f *testing.F) {
	f.Add([]byte(answer(4) + answer(5)))
	f.Add([]byte(`{"state_update":{},"block":` + answer(4) + `}`))
	f.Add([]byte(strings.Replace(answer(4), `"0x1"`, `null`, 1)))
	f.Add([]byte(zipped(f, answer(4))))
	f.Add([]byte(`{"block":{"block":[[[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		// The reader's own buffers; and for each decompressed byte a felt in a growing list, with the
		// garbage of reading it.
		const buffers, decoded = 4 << 20, 400
		unzipped := 1
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			unzipped = 1100
		}
		memory.Within(t, buffers+decoded*unzipped*len(data), func() { readBlocks(t, data) })
	})
}

func readBlocks(t *testing.T, data []byte) {
	opened, err := newFile("memory", io.NopCloser(bytes.NewReader(data)))
	if err != nil {
		return
	}
	defer opened.close()
	var before last
	for {
		block, err := opened.block(before)
		if err != nil {
			return
		}
		if before.path != "" && (block.Number != before.number+1 || block.Parent != before.hash) {
			t.Fatalf("block %d with the parent %s came after block %d, which is %s", block.Number, block.Parent, before.number, before.hash)
		}
		before = last{"memory", block.Number, block.Hash}
	}
}
