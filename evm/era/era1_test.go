package era

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/era/eratest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

func TestEra1(t *testing.T) {
	for name, first := range map[string]uint64{"from the genesis": 0, "from the middle": MaxBlocks} {
		t.Run(name, func(t *testing.T) {
			chain := eratest.New(t, first, 5, 5)
			data := encode(t, Era1, chain)
			got, err := readAll(data)
			if err != nil {
				t.Fatal(err)
			}
			sameBlocks(t, got, chain.Blocks)
			found, err := Peek(bytes.NewReader(data), int64(len(data)))
			if want := (Range{first, first + 4}); err != nil || found != want {
				t.Errorf("the file holds the blocks %+v, %v, want %+v", found, err, want)
			}
		})
	}
}

// TestEra1WithOtherEntries: unknown entries are skipped, between blocks and after them.
func TestEra1WithOtherEntries(t *testing.T) {
	chain := eratest.New(t, 0, 2, 2)
	a := newArchive(t, chain)
	for i := range chain.Blocks {
		a.block(i)
		a.entry(0x0bad, []byte("unknown to this reader"))
	}
	got, err := readAll(a.end())
	if err != nil {
		t.Fatal(err)
	}
	sameBlocks(t, got, chain.Blocks)
}

func TestCutAtEveryByte(t *testing.T) {
	for _, format := range []Format{Era1, ERE} {
		data := encode(t, format, eratest.New(t, 0, 2, 2))
		for cut := range data {
			if blocks, err := readAll(data[:cut]); err == nil || len(blocks) > 0 {
				t.Fatalf("format %d cut at %d of %d: %d blocks and the error %v", format, cut, len(data), len(blocks), err)
			}
			if found, err := Peek(bytes.NewReader(data[:cut]), int64(cut)); err == nil {
				t.Fatalf("format %d cut at %d of %d has the blocks %+v", format, cut, len(data), found)
			}
		}
	}
}

// TestChangedAtEveryByte changes each byte of a file: it is refused, unless the byte
// is one of a compressed entry that decompresses to the same.
func TestChangedAtEveryByte(t *testing.T) {
	for _, format := range []Format{Era1, ERE} {
		chain := eratest.New(t, 0, 3, 3)
		data := encode(t, format, chain)
		for i := range data {
			changed := bytes.Clone(data)
			changed[i] ^= 1
			got, err := readAll(changed)
			if err == nil {
				sameBlocks(t, got, chain.Blocks)
				sameContent(t, changed, data)
			}
		}
	}
}

func TestEra1Refused(t *testing.T) {
	chain := eratest.New(t, MaxBlocks, 3, 3)
	testRefused(t, chain, 0, []refused{
		{"wrong accumulator", "the accumulator is", func(a *archive) []byte {
			a.block(0)
			a.entry(kindAccumulator, make([]byte, 32))
			return a.index(kindBlockIndex, kindHeader)
		}},
		{"short accumulator", "has 31 bytes; want 32", func(a *archive) []byte {
			a.block(0)
			a.entry(kindAccumulator, make([]byte, 31))
			return a.index(kindBlockIndex, kindHeader)
		}},
		{"no accumulator", "want the CompressedHeader entry (type 0x3) of a block, or the Accumulator", func(a *archive) []byte {
			a.block(0)
			return a.index(kindBlockIndex, kindHeader)
		}},
		{"no blocks", "the file has no blocks", func(a *archive) []byte { return a.end() }},
		{"another number in the index", "begins with block 8193", func(a *archive) []byte {
			a.block(0)
			a.first++
			return a.end()
		}},
		{"another offset in the index", "the block index has block 8193 at", func(a *archive) []byte {
			a.block(0)
			a.block(1)
			a.places[kindHeader][1]++
			return a.end()
		}},
		{"an index of fewer blocks", "want 32 for 2 blocks", func(a *archive) []byte {
			a.block(0)
			a.block(1)
			a.places[kindHeader] = a.places[kindHeader][:1]
			return a.end()
		}},
		{"another count in the index", "counts 9 blocks", func(a *archive) []byte {
			a.block(0)
			data := a.end()
			binary.LittleEndian.PutUint64(data[len(data)-8:], 9)
			return data
		}},
		{"an entry after the index", "want the BlockIndex", func(a *archive) []byte {
			a.block(0)
			a.end()
			a.entry(0x0bad, nil)
			return a.out.Bytes()
		}},
		{"two indexes", "want the end of the file", func(a *archive) []byte {
			a.block(0)
			a.end()
			return a.index(kindBlockIndex, kindHeader)
		}},
		{"bytes after the index", "cut short: found 5 bytes", func(a *archive) []byte {
			a.block(0)
			return append(a.end(), 1, 2, 3, 4, 5)
		}},
		{"wrong total difficulty", "the headers add up to 1000201", func(a *archive) []byte {
			a.block(0)
			a.total.AddUint64(&a.total, 1)
			a.block(1)
			return a.end()
		}},
		{"wrong difficulty of a later era's first block", "the accumulator is", func(a *archive) []byte {
			a.record(a.chain.Blocks[0])
			a.total.AddUint64(&a.total, 1)
			a.zipped(kindHeader, a.chain.Blocks[0].Header())
			a.zipped(kindBody, a.chain.Blocks[0].Body())
			a.zipped(kindReceipts, a.chain.Results[0])
			a.totalEntry()
			return a.end()
		}},
		{"total difficulty over 256 bits", "exceeds 256 bits", func(a *archive) []byte {
			a.total.SetAllOne()
			a.total.SubUint64(&a.total, 100) // the first block's difficulty
			a.block(0)
			a.block(1)
			return a.end()
		}},
		{"a block left out", "found the header of block 8194; want that of block 8193", func(a *archive) []byte {
			a.block(0)
			a.block(2)
			return a.end()
		}},
		{"another parent", "the block before it is", func(a *archive) []byte {
			a.block(0)
			stranger := &types.Header{Number: big.NewInt(MaxBlocks + 1), Difficulty: big.NewInt(1)}
			a.zipped(kindHeader, stranger)
			return a.end()
		}},
		{"no body", "want the CompressedBody", func(a *archive) []byte {
			a.zipped(kindHeader, a.chain.Blocks[0].Header())
			a.zipped(kindReceipts, []*types.Receipt{})
			return a.end()
		}},
		{"a body first", "want the CompressedHeader", func(a *archive) []byte {
			a.zipped(kindBody, a.chain.Blocks[0].Body())
			return a.end()
		}},
		{"receipts of ERE", "want the CompressedReceipts", func(a *archive) []byte {
			a.zipped(kindHeader, a.chain.Blocks[0].Header())
			a.zipped(kindBody, a.chain.Blocks[0].Body())
			a.zipped(kindSlimReceipts, []*types.Receipt{})
			return a.end()
		}},
		{"a header that is not compressed", "not in snappy's framing format", func(a *archive) []byte {
			a.entry(kindHeader, []byte("a header"))
			return a.end()
		}},
		{"a header that is none", "not a block header", func(a *archive) []byte {
			a.zipped(kindHeader, []byte("a header"))
			return a.end()
		}},
		{"a header that swells", "decompresses to more than", func(a *archive) []byte {
			a.zipped(kindHeader, make([]byte, 2*maxHeaderSize))
			return a.end()
		}},
		{"a length beyond the file", "declares 4294967295 bytes", func(a *archive) []byte {
			return append(a.out.Bytes(), appendEntryHead(nil, kindHeader, 0xffffffff)...)
		}},
		{"reserved bytes", "want two bytes of zero", func(a *archive) []byte {
			return append(a.out.Bytes(), 3, 0, 0, 0, 0, 0, 0, 1)
		}},
		{"a version with data", "want none", func(a *archive) []byte {
			return append(appendEntryHead(nil, kindVersion, 1), 0)
		}},
		{"too many entries", "more than 131072 entries", func(a *archive) []byte {
			for range maxEntries {
				a.entry(0x0bad, nil)
			}
			return a.out.Bytes()
		}},
	})
}

// TestEra1BlockRefused has files whose headers are right: the fault shows when the
// second block is reached.
func TestEra1BlockRefused(t *testing.T) {
	build := func(body, receipts any) func(a *archive) []byte {
		return func(a *archive) []byte {
			a.block(0)
			a.record(a.chain.Blocks[1])
			a.zipped(kindHeader, a.chain.Blocks[1].Header())
			a.zipped(kindBody, body)
			a.zipped(kindReceipts, receipts)
			a.totalEntry()
			return a.end()
		}
	}
	chain := eratest.New(t, 0, 3, 3)
	body := func(change func(*types.Body)) *types.Body {
		whole := *chain.Blocks[1].Body()
		change(&whole)
		return &whole
	}
	testRefused(t, chain, 1, []refused{
		{"a body that is none", "block 1: not a block body", build("a body", chain.Results[1])},
		{"a transaction left out", "block 1: the transactions have the root", build(body(func(b *types.Body) { b.Transactions = b.Transactions[1:] }), chain.Results[1])},
		{"an uncle more", "block 1: the uncles have the hash", build(body(func(b *types.Body) { b.Uncles = []*types.Header{{}} }), chain.Results[1])},
		{"withdrawals before their time", "block 1: the body has withdrawals: true", build(body(func(b *types.Body) { b.Withdrawals = types.Withdrawals{} }), chain.Results[1])},
		{"receipts that are none", "block 1: not a list of receipts", build(chain.Blocks[1].Body(), "receipts")},
		{"a receipt left out", "block 1: the receipts have the root", build(chain.Blocks[1].Body(), chain.Results[1][:1])},
		{"the receipts of another block", "block 1: the receipts have the root", build(chain.Blocks[1].Body(), chain.Results[2])},
	})
}

func TestEra1TooManyBlocks(t *testing.T) {
	chain := &eratest.Chain{}
	total, parent := new(big.Int), common.Hash{}
	for i := range int64(MaxBlocks + 1) {
		b := types.NewBlock(&types.Header{ParentHash: parent, Number: big.NewInt(i), Difficulty: common.Big1}, nil, nil, newHasher())
		total = new(big.Int).Add(total, common.Big1)
		chain.Blocks, chain.Results, chain.Totals = append(chain.Blocks, b), append(chain.Results, nil), append(chain.Totals, total)
		parent = b.Hash()
	}
	a := newArchive(t, chain)
	for i := range chain.Blocks {
		a.block(i)
	}
	_, err := readAll(a.end())
	var at *Error
	if !errors.As(err, &at) || at.Blocks != MaxBlocks || at.Offset != a.places[kindHeader][MaxBlocks] || !strings.Contains(err.Error(), "one block more than 8192") {
		t.Fatalf("got the error %v", err)
	}
}

// TestAccumulator compares with roots worked out from the definition alone: a
// tree of 8192 leaves, hashed pair by pair.
func TestAccumulator(t *testing.T) {
	for _, count := range []int{0, 1, 2, 3, 8191, MaxBlocks} {
		var a accumulator
		leaves := make([][32]byte, MaxBlocks)
		for i := range count {
			hash := common.BigToHash(big.NewInt(int64(i + 1)))
			total := uint256.NewInt(uint64(1000 * i))
			a.add(hash, total)
			leaves[i] = hashPair(hash, littleEndian(total))
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
