package file

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"ashlar/evm/era"
	"ashlar/evm/era/eratest"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// makeBlocks builds blocks from a number on, all before the merge.
func makeBlocks(tb testing.TB, first uint64, count int) []*types.Block {
	tb.Helper()
	return eratest.New(tb, first, count, count).Blocks
}

func encodeExport(tb testing.TB, blocks []*types.Block) []byte {
	tb.Helper()
	var out bytes.Buffer
	for _, b := range blocks {
		if err := rlp.Encode(&out, b); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

func zip(tb testing.TB, members ...[]byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	for _, m := range members {
		w := gzip.NewWriter(&out)
		if _, err := w.Write(m); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

// encodeHistory writes a history file of a whole chain.
func encodeHistory(tb testing.TB, format era.Format, c *eratest.Chain) []byte {
	tb.Helper()
	var out bytes.Buffer
	if _, err := era.Write(tb.Context(), &out, format, c, era.Range{First: c.First, Last: c.First + uint64(len(c.Blocks)) - 1}); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// inMemory is an input that is no file.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// readAll reads the blocks of a file with this content, until an error or the end.
func readAll(tb testing.TB, data []byte) ([]*types.Block, error) {
	tb.Helper()
	f, err := open("memory", inMemory{bytes.NewReader(data)}, int64(len(data)))
	if err != nil {
		return nil, err
	}
	return drain(tb, f)
}

func readPath(tb testing.TB, path string) ([]*types.Block, error) {
	tb.Helper()
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return drain(tb, f)
}

// drain reads a file to its end and closes it, and watches its progress.
func drain(tb testing.TB, f *File) (blocks []*types.Block, err error) {
	tb.Helper()
	defer f.Close()
	var last int64
	for {
		block, err := f.Next()
		read, total := f.Progress()
		if read < last || read > total {
			tb.Fatalf("progress went from %d to %d of %d", last, read, total)
		}
		last = read
		if err == io.EOF {
			if read != total {
				tb.Fatalf("at the end %d bytes of %d are read", read, total)
			}
			return blocks, nil
		}
		if err != nil {
			if _, again := f.Next(); again != err {
				tb.Fatalf("after the error %v came %v", err, again)
			}
			return blocks, err
		}
		blocks = append(blocks, block)
	}
}

func sameBlocks(tb testing.TB, got, want []*types.Block) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("got %d blocks, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Size() != want[i].Size() {
			tb.Errorf("block %d has size %d, want %d", i, got[i].Size(), want[i].Size())
		}
	}
	if !bytes.Equal(encodeExport(tb, got), encodeExport(tb, want)) {
		tb.Error("the blocks differ")
	}
}
