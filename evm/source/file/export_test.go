package file

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/internal/vectors"
)

func TestExport(t *testing.T) {
	blocks := makeBlocks(t, 0, 4)
	plain := encodeExport(t, blocks)
	half := len(encodeExport(t, blocks[:2])) - 10 // a member may end inside of a block
	for name, data := range map[string][]byte{
		"plain":            plain,
		"gzip":             zip(t, plain),
		"two gzip members": zip(t, plain[:half], plain[half:]),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(t, data)
			if err != nil {
				t.Fatal(err)
			}
			sameBlocks(t, got, blocks)
		})
	}
}

func TestExportCutAtEveryByte(t *testing.T) {
	blocks := makeBlocks(t, 1, 3)
	plain := encodeExport(t, blocks)
	whole, start := 0, 0 // blocks before the cut, and where the cut one begins
	for cut := 1; cut < len(plain); cut++ {
		if cut == start+int(blocks[whole].Size()) {
			whole, start = whole+1, cut
		}
		atEnd := cut == start

		got, err := readAll(t, plain[:cut])
		if len(got) != whole {
			t.Fatalf("cut at %d: %d blocks, want %d", cut, len(got), whole)
		}
		if (err == nil) != atEnd {
			t.Fatalf("cut at %d: error is %v, the end of a block is there: %t", cut, err, atEnd)
		}
		if !atEnd {
			wantFault(t, err, int64(start), whole, "cut short")
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("cut at %d: %v is no unexpected EOF", cut, err)
			}
		}
	}
}

func TestGzipCutAtEveryByte(t *testing.T) {
	zipped := zip(t, encodeExport(t, makeBlocks(t, 1, 2)))
	for cut := range zipped {
		if _, err := readAll(t, zipped[:cut]); err == nil {
			t.Fatalf("cut at %d of %d: no error", cut, len(zipped))
		}
	}
}

func TestExportRefused(t *testing.T) {
	blocks := makeBlocks(t, 1, 2)
	one := encodeExport(t, blocks[:1])
	corrupt := bytes.Clone(encodeExport(t, blocks))
	corrupt[len(one)+3] ^= 0x80 // the head of the second block's header
	for _, test := range []struct {
		name   string
		data   []byte
		offset int
		blocks int
		want   string
	}{
		{"neither format", []byte("{\"jsonrpc\":2}"), 0, 0, "want an RLP chain export"},
		{"not a list after a block", append(bytes.Clone(one), 0x07), len(one), 1, "found the byte 0x7"},
		{"a list, but no block", append(bytes.Clone(one), 0xc1, 0x80), len(one), 1, "as a block"},
		{"a corrupt block", corrupt, len(one), 1, "as a block"},
		{"a size beyond 64 bits", bytes.Repeat([]byte{0xff}, 20), 0, 0, "declares more than 134217728 bytes"},
		{"a size over the bound", []byte{0xfb, 0x08, 0, 0, 1, 0}, 0, 0, "declares more than 134217728 bytes"},
		{"a size beyond the file", []byte{0xfb, 0x07, 0, 0, 0, 0}, 0, 0, "the file has 6 more"},
		{"a size beyond the gzip", zip(t, append(bytes.Clone(one), 0xfb, 0x07, 0, 0, 0, 0)), len(one), 1, "of which 6 are there"},
		{"a head cut short", []byte{0xf9, 0x01}, 0, 0, "want the head of a list, 3 bytes"},
		{"gzip with a wrong checksum", spoilt(zip(t, one), -8), len(one), 1, "checksum"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readAll(t, test.data)
			wantFault(t, err, int64(test.offset), test.blocks, test.want)
		})
	}
}

func TestOpenRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.rlp")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "absent.rlp"): "no such file",
		empty:                            "empty.rlp: is empty",
		dir:                              "is a folder",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) returned %v, want %q", path, err, want)
		}
	}
}

func TestNextAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chain.rlp")
	if err := os.WriteFile(path, encodeExport(t, makeBlocks(t, 0, 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Next after Close returned %v", err)
	}
}

// TestExportVectors reads chains that other clients wrote and expects that
// nothing of them is lost: encoded again they are the same bytes.
func TestExportVectors(t *testing.T) {
	for _, test := range []struct {
		path  []string
		count int
	}{
		{[]string{"execution-apis", "chain.rlp"}, 54},
		{[]string{"chains", "sync-3000", "chain.rlp"}, 3000},
		{[]string{"chains", "prague-with-state", "chain.rlp"}, 600},
		{[]string{"chains", "reorg-branches", "blocks_1024_td_135112316.rlp"}, 1024},
		{[]string{"chains", "reorg-branches", "blocks_10_td_1971072_3.rlp"}, 10},
	} {
		t.Run(strings.Join(test.path, "/"), func(t *testing.T) {
			path := vectors.Path(t, test.path...)
			blocks, err := readPath(t, path)
			if err != nil {
				t.Fatal(err)
			}
			if len(blocks) != test.count {
				t.Errorf("%d blocks, want %d", len(blocks), test.count)
			}
			for i, b := range blocks[1:] {
				if b.ParentHash() != blocks[i].Hash() {
					t.Fatalf("block %d does not follow the one before", b.NumberU64())
				}
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(encodeExport(t, blocks), data) {
				t.Error("encoded again the blocks are other bytes")
			}
		})
	}
}

// spoilt returns data with one byte changed; a negative position counts from the end.
func spoilt(data []byte, position int) []byte {
	data = bytes.Clone(data)
	if position < 0 {
		position += len(data)
	}
	data[position] ^= 1
	return data
}

func wantFault(t *testing.T, err error, offset int64, blocks int, text string) {
	t.Helper()
	var at *Error
	if !errors.As(err, &at) {
		t.Fatalf("got the error %v, want one with a place", err)
	}
	if at.Path == "" || at.Offset != offset || at.Block != blocks || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %q\nwant one at byte %d after %d blocks with %q", err, offset, blocks, text)
	}
}
