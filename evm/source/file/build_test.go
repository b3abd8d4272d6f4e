package file

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
	"github.com/klauspost/compress/snappy"
)

// makeBlocks builds a chain of blocks from a number on: linked, with signed
// transactions of two types, an uncle now and then, and roots that fit.
func makeBlocks(tb testing.TB, from uint64, count int) []*types.Block {
	tb.Helper()
	key, err := crypto.ToECDSA(common.BigToHash(big.NewInt(7)).Bytes())
	if err != nil {
		tb.Fatal(err)
	}
	signer := types.NewLondonSigner(big.NewInt(1337))
	to := common.Address{1, 2, 3}
	var blocks []*types.Block
	parent := common.Hash{}
	for i := range count {
		number := from + uint64(i)
		var body types.Body
		if number > 0 {
			body.Transactions = types.Transactions{
				types.MustSignNewTx(key, signer, &types.LegacyTx{Nonce: 2 * number, To: &to, Value: big.NewInt(1), Gas: 21000, GasPrice: big.NewInt(10)}),
				types.MustSignNewTx(key, signer, &types.DynamicFeeTx{ChainID: big.NewInt(1337), Nonce: 2*number + 1, Gas: 90000,
					GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(20), Value: new(big.Int), Data: bytes.Repeat([]byte{byte(i)}, 100)}),
			}
		}
		if i == 2 {
			body.Uncles = []*types.Header{{Number: new(big.Int).SetUint64(number - 1), Difficulty: big.NewInt(5)}}
		}
		header := &types.Header{
			ParentHash: parent,
			Number:     new(big.Int).SetUint64(number),
			Difficulty: big.NewInt(100 + int64(i)),
			GasLimit:   8_000_000,
			Time:       12 * number,
			Extra:      []byte("made by a test"),
		}
		block := types.NewBlock(header, &body, nil, trie.NewStackTrie(nil))
		blocks = append(blocks, block)
		parent = block.Hash()
	}
	return blocks
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

// archive writes an era1 file piece by piece, so that a test can put a wrong
// piece in the place of a right one.
type archive struct {
	tb      testing.TB
	out     bytes.Buffer
	records accumulator
	total   uint256.Int
	first   uint64
	starts  []int64
}

func (a *archive) entry(kind uint16, data []byte) {
	a.out.Write(entryHead(kind, uint32(len(data))))
	a.out.Write(data)
}

func entryHead(kind uint16, length uint32) []byte {
	head := make([]byte, entryHeadSize)
	binary.LittleEndian.PutUint16(head, kind)
	binary.LittleEndian.PutUint32(head[2:], length)
	return head
}

func (a *archive) zipped(kind uint16, value any) {
	a.tb.Helper()
	data, err := rlp.EncodeToBytes(value)
	if err != nil {
		a.tb.Fatal(err)
	}
	a.entry(kind, snap(a.tb, data))
}

func snap(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := snappy.NewBufferedWriter(&out)
	if _, err := w.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// start records where a block begins, and what the accumulator holds of it.
func (a *archive) start(b *types.Block) {
	if len(a.starts) == 0 {
		a.first = b.NumberU64()
		if a.first > 0 {
			a.total.SetUint64(1_000_000)
		}
	}
	a.starts = append(a.starts, int64(a.out.Len()))
	a.total.Add(&a.total, uint256.MustFromBig(b.Difficulty()))
	a.records.add(b.Hash(), &a.total)
}

func (a *archive) block(b *types.Block) {
	a.tb.Helper()
	a.start(b)
	a.zipped(entryCompressedHeader, b.Header())
	a.zipped(entryCompressedBody, b.Body())
	a.zipped(entryCompressedReceipts, []*types.Receipt{})
	a.entry(entryTotalDifficulty, littleEndian(&a.total))
}

func littleEndian(n *uint256.Int) []byte {
	var out []byte
	for _, limb := range n {
		out = binary.LittleEndian.AppendUint64(out, limb)
	}
	return out
}

func (a *archive) end() []byte {
	root := a.records.root()
	a.entry(entryAccumulator, root[:])
	a.entry(entryBlockIndex, a.index())
	return a.out.Bytes()
}

func (a *archive) index() []byte {
	base := int64(a.out.Len())
	index := binary.LittleEndian.AppendUint64(nil, a.first)
	for _, start := range a.starts {
		index = binary.LittleEndian.AppendUint64(index, uint64(start-base))
	}
	return binary.LittleEndian.AppendUint64(index, uint64(len(a.starts)))
}

func newArchive(tb testing.TB) *archive {
	a := &archive{tb: tb}
	a.entry(entryVersion, nil)
	return a
}

func encodeEra1(tb testing.TB, blocks []*types.Block) []byte {
	tb.Helper()
	a := newArchive(tb)
	for _, b := range blocks {
		a.block(b)
	}
	return a.end()
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
