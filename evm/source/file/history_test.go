package file

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/era"
	"ashlar/evm/era/eratest"
	"ashlar/evm/genesis"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// write writes a file into a folder and returns its path.
func write(t *testing.T, folder, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHistory(t *testing.T) {
	chain := eratest.New(t, 8192, 5, 2)
	blocks, err := readAll(t, encodeHistory(t, era.ERE, chain))
	if err != nil {
		t.Fatal(err)
	}
	sameBlocks(t, blocks, chain.Blocks)
}

// TestHistoryNames: what a file's name says is compared with what it holds.
func TestHistoryNames(t *testing.T) {
	before, after := eratest.New(t, 8192, 3, 3), eratest.New(t, 16384, 3, 0)
	era1, ere := encodeHistory(t, era.Era1, before), encodeHistory(t, era.ERE, after)
	id := after.Blocks[2].Hash().Hex()[2:10]
	for _, test := range []struct {
		name string
		data []byte
		want string // in the error; empty: none
	}{
		{"a-net-00002-" + id + ".ere", ere, ""},
		{"a-net-00002-" + id + "-noproofs.ere", ere, ""},
		{"whatever.era1", ere, ""},
		{"net-00002-" + id + "-noreceipts.ere", ere, "the name says receipts: false"},
		{"net-00001-" + id + ".ere", ere, "the name says era 1; the first block is 16384, of era 2"},
		{"net-00002-01020304.ere", ere, "the name says 01020304; the content gives " + id},
		{"net-00002-" + id + ".era1", ere, "the name ends with .era1; the content is that of .ere"},
		{"net-00001-01020304.era1", era1, "the name says 01020304; the content gives"},
	} {
		path := write(t, t.TempDir(), test.name, test.data)
		_, err := readPath(t, path)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), path+": "+test.want)) {
			t.Errorf("%s: got the error %v, want %q", test.name, err, test.want)
		}
	}
}

// TestChecksums: a file is compared with the list in its folder, whichever of the two
// forms that has.
func TestChecksums(t *testing.T) {
	chain := eratest.New(t, 0, 3, 3)
	data := encodeHistory(t, era.Era1, chain)
	sum, err := era.Sum(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	digits := sum.String()[2:]
	other := strings.Repeat("ab", 32)
	damaged := spoilt(data, 700)
	for _, test := range []struct {
		name, list string
		data       []byte
		want       string // in the error; empty: none
	}{
		{"geth's form", "0x" + other + "\n" + sum.String(), data, ""},
		{"sha256sum's form", digits + "  file.era1\n" + other + "  file2.era1\n", data, ""},
		{"sha256sum's form, binary", digits + " *file.era1\n", data, ""},
		{"another checksum", other + "  file.era1\n", data, "0x" + digits + ", checksums.txt lists 0x" + other},
		{"not in the list of names", digits + "  other.era1\n", data, "which checksums.txt does not list"},
		{"not in the list", "0x" + other, data, "which checksums.txt does not list"},
		{"a damaged file", sum.String(), damaged, "after 1 whole blocks: block 1: "},
		{"not a list", "# geth\nchecksums", data, `checksums.txt: line 2: found "checksums"`},
		{"two checksums", digits + " file.era1\n" + other + " file.era1", data, "line 2: file.era1 is listed twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, dir, "file.era1", test.data)
			write(t, dir, era.ChecksumsName, []byte(test.list))
			blocks, err := readPath(t, path)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				sameBlocks(t, blocks, chain.Blocks)
				return
			}
			if err == nil || len(blocks) > 0 || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %d blocks and the error %v, want %q", len(blocks), err, test.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	export := write(t, t.TempDir(), "chain.rlp", encodeExport(t, makeBlocks(t, 0, 2)))
	// Their names are in another order than their blocks.
	last := write(t, dir, "a.ere", encodeHistory(t, era.ERE, eratest.New(t, 20, 10, 0)))
	first := write(t, dir, "b.era1", encodeHistory(t, era.Era1, eratest.New(t, 10, 10, 10)))
	write(t, dir, "notes.txt", []byte("not a history file"))
	write(t, dir, ".c.ere", []byte("not yet one"))
	got, err := List(export, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Listed{{Path: export}, {first, true, era.Range{First: 10, Last: 19}}, {last, true, era.Range{First: 20, Last: 29}}}
	if len(got) != len(want) {
		t.Fatalf("the files are %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("file %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestListRefused(t *testing.T) {
	data := encodeHistory(t, era.ERE, eratest.New(t, 20, 10, 0))
	for _, test := range []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"an empty folder", nil, "the folder has no history files"},
		{"an export by another name", map[string][]byte{"a.era1": encodeExport(t, makeBlocks(t, 0, 1))}, "a.era1: is not a history file"},
		{"a file twice", map[string][]byte{"a.ere": data, "b.ere": data}, "b.ere: holds block 20, which a.ere holds too"},
		{"a file cut short", map[string][]byte{"a.ere": data[:len(data)-9]}, "a.ere: at byte "},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range test.files {
				write(t, dir, name, data)
			}
			if _, err := List(dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want %q", err, test.want)
			}
		})
	}
	if _, err := List(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is absent: %v", err)
	}
}

func TestCheckGaps(t *testing.T) {
	files := []Listed{
		{Path: "zero", History: true, Blocks: era.Range{First: 0, Last: 8191}},
		{Path: "export"},
		{Path: "two", History: true, Blocks: era.Range{First: 16384, Last: 24575}},
		{Path: "four", History: true, Blocks: era.Range{First: 32768, Last: 40959}},
	}
	for _, test := range []struct {
		head uint64
		want string // in the error; empty: none
	}{
		{0, "no file has the blocks 24576 to 32767: two ends with block 24575, four begins with block 32768"},
		{30000, "no file has the blocks 30001 to 32767"},
		{32767, ""},
	} {
		err := CheckGaps(files, test.head)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrGap) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("at block %d: got the error %v, want %q", test.head, err, test.want)
		}
	}
}

// TestEra1Vectors reads the first archives of two networks.
func TestEra1Vectors(t *testing.T) {
	for network, name := range map[string]string{
		"mainnet": "mainnet-00000-5ec1ffb8.era1",
		"sepolia": "sepolia-00000-643a00f7.era1",
	} {
		t.Run(network, func(t *testing.T) {
			blocks, err := readPath(t, vectors.Path(t, "era1", name))
			if err != nil {
				t.Fatal(err)
			}
			if len(blocks) != 8192 {
				t.Fatalf("%d blocks, want 8192", len(blocks))
			}
			first, _ := genesis.Builtin(network)
			parent := first.ToBlock().Hash()
			if blocks[0].Hash() != parent {
				t.Fatalf("block 0 is %s, the genesis block %s", blocks[0].Hash(), parent)
			}
			for _, b := range blocks[1:] {
				if b.ParentHash() != parent {
					t.Fatalf("block %d does not follow the one before", b.NumberU64())
				}
				if root := types.DeriveSha(b.Transactions(), trie.NewStackTrie(nil)); root != b.TxHash() {
					t.Fatalf("block %d: the transactions' root is %s, the header has %s", b.NumberU64(), root, b.TxHash())
				}
				parent = b.Hash()
			}
		})
	}
}
