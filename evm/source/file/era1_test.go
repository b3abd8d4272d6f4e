package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/genesis"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
)

func TestEra1(t *testing.T) {
	for name, from := range map[string]uint64{"from the genesis": 0, "from the middle": 8192} {
		t.Run(name, func(t *testing.T) {
			blocks := makeBlocks(t, from, 5)
			got, err := readAll(t, encodeEra1(t, blocks))
			if err != nil {
				t.Fatal(err)
			}
			sameBlocks(t, got, blocks)
		})
	}
}

func TestEra1WithOtherEntries(t *testing.T) {
	blocks := makeBlocks(t, 0, 2)
	a := newArchive(t)
	for _, b := range blocks {
		a.block(b)
	}
	a.entry(0x0bad, []byte("unknown to this reader"))
	got, err := readAll(t, a.end())
	if err != nil {
		t.Fatal(err)
	}
	sameBlocks(t, got, blocks)
}

func TestEra1CutAtEveryByte(t *testing.T) {
	data := encodeEra1(t, makeBlocks(t, 0, 2))
	for cut := range data {
		if blocks, err := readAll(t, data[:cut]); err == nil || len(blocks) > 0 {
			t.Fatalf("cut at %d of %d: %d blocks and the error %v", cut, len(data), len(blocks), err)
		}
	}
}

// TestEra1Refused builds files with one thing wrong. Nothing of them may be returned.
func TestEra1Refused(t *testing.T) {
	blocks := makeBlocks(t, 8192, 3)
	stranger := types.NewBlockWithHeader(&types.Header{Number: big.NewInt(8193), Difficulty: big.NewInt(1)})
	for _, test := range []struct {
		name  string
		want  string
		build func(a *archive) []byte
	}{
		{"wrong accumulator", "the accumulator is", func(a *archive) []byte {
			a.block(blocks[0])
			a.entry(entryAccumulator, make([]byte, 32))
			return a.out.Bytes()
		}},
		{"short accumulator", "has 31 bytes; want 32", func(a *archive) []byte {
			a.block(blocks[0])
			a.entry(entryAccumulator, make([]byte, 31))
			return a.out.Bytes()
		}},
		{"no blocks", "before any block", func(a *archive) []byte { return a.end() }},
		{"another number in the index", "begins with block 8193", func(a *archive) []byte {
			a.block(blocks[0])
			a.first++
			return a.end()
		}},
		{"another offset in the index", "the block index has block 8193 at", func(a *archive) []byte {
			a.block(blocks[0])
			a.block(blocks[1])
			a.starts[1]++
			return a.end()
		}},
		{"an index of fewer blocks", "want 32 for 2 blocks", func(a *archive) []byte {
			a.block(blocks[0])
			a.block(blocks[1])
			a.starts = a.starts[:1]
			return a.end()
		}},
		{"another count in the index", "counts 9 blocks", func(a *archive) []byte {
			a.block(blocks[0])
			data := a.end()
			binary.LittleEndian.PutUint64(data[len(data)-8:], 9)
			return data
		}},
		{"bytes after the index", "5 bytes after the block index", func(a *archive) []byte {
			a.block(blocks[0])
			return append(a.end(), 1, 2, 3, 4, 5)
		}},
		{"wrong total difficulty", "the headers add up to 1000201", func(a *archive) []byte {
			a.block(blocks[0])
			a.total.AddUint64(&a.total, 1)
			a.block(blocks[1])
			return a.end()
		}},
		{"wrong difficulty of a later era's first block", "the accumulator is", func(a *archive) []byte {
			a.start(blocks[0])
			a.total.AddUint64(&a.total, 1)
			a.zipped(entryCompressedHeader, blocks[0].Header())
			a.zipped(entryCompressedBody, blocks[0].Body())
			a.zipped(entryCompressedReceipts, []*types.Receipt{})
			a.entry(entryTotalDifficulty, littleEndian(&a.total))
			return a.end()
		}},
		{"total difficulty over 256 bits", "exceeds 256 bits", func(a *archive) []byte {
			a.total.SetAllOne()
			a.starts, a.first = append(a.starts, int64(a.out.Len())), 8192
			a.zipped(entryCompressedHeader, blocks[0].Header())
			a.zipped(entryCompressedBody, blocks[0].Body())
			a.zipped(entryCompressedReceipts, []*types.Receipt{})
			a.entry(entryTotalDifficulty, littleEndian(&a.total))
			a.records.add(blocks[0].Hash(), &a.total)
			a.block(blocks[1])
			return a.end()
		}},
		{"a block left out", "the header of block 8194; want that of block 8193", func(a *archive) []byte {
			a.block(blocks[0])
			a.block(blocks[2])
			return a.end()
		}},
		{"another parent", "the block before it is", func(a *archive) []byte {
			a.block(blocks[0])
			a.block(stranger)
			return a.end()
		}},
		{"no body", "want a compressed body", func(a *archive) []byte {
			a.zipped(entryCompressedHeader, blocks[0].Header())
			a.zipped(entryCompressedReceipts, []*types.Receipt{})
			return a.end()
		}},
		{"a body first", "want a header or the accumulator", func(a *archive) []byte {
			a.zipped(entryCompressedBody, blocks[0].Body())
			return a.end()
		}},
		{"a header that is not compressed", "not in snappy's framing format", func(a *archive) []byte {
			a.entry(entryCompressedHeader, []byte("a header"))
			return a.end()
		}},
		{"a header that is none", "no header of a block", func(a *archive) []byte {
			a.zipped(entryCompressedHeader, []byte("a header"))
			return a.end()
		}},
		{"a header that swells", "decompresses to more than", func(a *archive) []byte {
			a.zipped(entryCompressedHeader, make([]byte, 2*maxHeaderSize))
			return a.end()
		}},
		{"a length beyond the file", "declares 4294967295 bytes", func(a *archive) []byte {
			return append(a.out.Bytes(), entryHead(entryCompressedHeader, 0xffffffff)...)
		}},
		{"reserved bytes", "want two bytes of zero", func(a *archive) []byte {
			return append(a.out.Bytes(), 3, 0, 0, 0, 0, 0, 0, 1)
		}},
		{"a version with data", "want none", func(a *archive) []byte {
			return append(entryHead(entryVersion, 1), 0)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := test.build(newArchive(t))
			got, err := readAll(t, data)
			if len(got) > 0 {
				t.Errorf("%d blocks came out", len(got))
			}
			var at *Error
			if !errors.As(err, &at) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got the error %v, want %q", err, test.want)
			}
			if at.Offset > int64(len(data)) {
				t.Errorf("the fault is at byte %d of %d", at.Offset, len(data))
			}
		})
	}
}

// TestEra1BodyRefused has a file whose headers are right: the fault shows when
// its block is reached.
func TestEra1BodyRefused(t *testing.T) {
	blocks := makeBlocks(t, 0, 2)
	a := newArchive(t)
	a.block(blocks[0])
	a.start(blocks[1])
	a.zipped(entryCompressedHeader, blocks[1].Header())
	at := int64(a.out.Len())
	a.zipped(entryCompressedBody, "a body")
	a.zipped(entryCompressedReceipts, []*types.Receipt{})
	a.entry(entryTotalDifficulty, littleEndian(&a.total))
	got, err := readAll(t, a.end())
	sameBlocks(t, got, blocks[:1])
	wantFault(t, err, at, 1, "no body of a block")
}

func TestEra1TooManyBlocks(t *testing.T) {
	a := newArchive(t)
	parent := common.Hash{}
	for i := range int64(maxEra1Blocks + 1) {
		b := types.NewBlockWithHeader(&types.Header{ParentHash: parent, Number: big.NewInt(i), Difficulty: common.Big1})
		a.block(b)
		parent = b.Hash()
	}
	_, err := readAll(t, a.end())
	wantFault(t, err, a.starts[maxEra1Blocks], maxEra1Blocks, "a block more than the 8192")
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

// TestAccumulator compares with roots worked out from the definition alone: a
// tree of 8192 leaves, hashed pair by pair.
func TestAccumulator(t *testing.T) {
	for _, count := range []int{0, 1, 2, 3, 8191, maxEra1Blocks} {
		var a accumulator
		leaves := make([][32]byte, maxEra1Blocks)
		for i := range count {
			hash := common.BigToHash(big.NewInt(int64(i + 1)))
			total := uint256.NewInt(uint64(1000 * i))
			a.add(hash, total)
			var word [32]byte
			copy(word[:], littleEndian(total))
			leaves[i] = hashPair(hash, word)
		}
		for len(leaves) > 1 {
			var above [][32]byte
			for i := 0; i < len(leaves); i += 2 {
				above = append(above, hashPair(leaves[i], leaves[i+1]))
			}
			leaves = above
		}
		var length [32]byte
		binary.LittleEndian.PutUint64(length[:], uint64(count))
		if want := hashPair(leaves[0], length); a.root() != want {
			t.Errorf("%d records: the root is %s, want %#x", count, a.root(), want)
		}
		if again := a.root(); !bytes.Equal(again[:], a.root().Bytes()) {
			t.Errorf("%d records: the root changes when it is asked for again", count)
		}
	}
}
