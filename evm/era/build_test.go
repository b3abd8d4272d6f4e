package era

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"

	"ashlar/evm/era/eratest"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/golang/snappy"
	"github.com/holiman/uint256"
)

// archive writes a history file entry by entry, so that a test can put a wrong entry
// in the place of a right one.
type archive struct {
	tb      testing.TB
	chain   *eratest.Chain
	out     bytes.Buffer
	records accumulator
	total   uint256.Int
	first   uint64
	places  map[kind][]int64
}

func newArchive(tb testing.TB, chain *eratest.Chain) *archive {
	a := &archive{tb: tb, chain: chain, first: chain.First, places: make(map[kind][]int64)}
	a.total = *uint256.MustFromBig(new(big.Int).Sub(chain.Totals[0], chain.Blocks[0].Difficulty()))
	a.entry(kindVersion, nil)
	return a
}

func (a *archive) entry(k kind, data []byte) {
	a.places[k] = append(a.places[k], int64(a.out.Len()))
	a.out.Write(append(appendEntryHead(nil, k, len(data)), data...))
}

func (a *archive) zipped(k kind, value any) {
	a.tb.Helper()
	data, err := rlp.EncodeToBytes(value)
	if err != nil {
		a.tb.Fatal(err)
	}
	var out bytes.Buffer
	w := snappy.NewBufferedWriter(&out)
	if _, err := w.Write(data); err != nil {
		a.tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		a.tb.Fatal(err)
	}
	a.entry(k, out.Bytes())
}

// record adds a block before the merge to the accumulator.
func (a *archive) record(b *types.Block) {
	a.total.Add(&a.total, uint256.MustFromBig(b.Difficulty()))
	a.records.add(b.Hash(), &a.total)
}

// totalEntry writes the present total difficulty.
func (a *archive) totalEntry() {
	word := littleEndian(&a.total)
	a.entry(kindTotalDifficulty, word[:])
}

// block writes the four entries of an era1 block: that of the chain with this place.
func (a *archive) block(i int) {
	b := a.chain.Blocks[i]
	a.record(b)
	a.zipped(kindHeader, b.Header())
	a.zipped(kindBody, b.Body())
	a.zipped(kindReceipts, a.chain.Results[i])
	a.totalEntry()
}

// end writes the accumulator and the index of an era1 file.
func (a *archive) end() []byte {
	root := a.records.root()
	a.entry(kindAccumulator, root[:])
	return a.index(kindBlockIndex, kindHeader)
}

// index writes an index of these kinds of entries.
func (a *archive) index(k kind, kinds ...kind) []byte {
	base := int64(a.out.Len())
	index := binary.LittleEndian.AppendUint64(nil, a.first)
	for i := range a.places[kindHeader] {
		for _, of := range kinds {
			index = binary.LittleEndian.AppendUint64(index, uint64(a.places[of][i]-base))
		}
	}
	if k == kindDynamicIndex {
		index = binary.LittleEndian.AppendUint64(index, uint64(len(kinds)))
	}
	a.entry(k, binary.LittleEndian.AppendUint64(index, uint64(len(a.places[kindHeader]))))
	return a.out.Bytes()
}

// encode writes a file of the whole chain.
func encode(tb testing.TB, format Format, c *eratest.Chain) []byte {
	tb.Helper()
	var out bytes.Buffer
	if _, err := Write(tb.Context(), &out, format, c, rangeFrom(c.First, len(c.Blocks))); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// readAll reads the blocks of a file, until an error or the end.
func readAll(data []byte) (blocks []*types.Block, err error) {
	r, err := Open(bytes.NewReader(data), int64(len(data)))
	for err == nil {
		var b *types.Block
		if b, err = r.Next(); err == nil {
			blocks = append(blocks, b)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return blocks, err
}

func sameBlocks(tb testing.TB, got, want []*types.Block) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("got %d blocks, want %d", len(got), len(want))
	}
	for i := range got {
		a, err := rlp.EncodeToBytes(got[i])
		if err != nil {
			tb.Fatal(err)
		}
		b, err := rlp.EncodeToBytes(want[i])
		if err != nil {
			tb.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			tb.Fatalf("block %d differs", want[i].NumberU64())
		}
	}
}

// sameContent compares the entries of two files as they are once decompressed.
func sameContent(tb testing.TB, a, b []byte) {
	tb.Helper()
	x, y := contents(tb, a), contents(tb, b)
	if len(x) != len(y) {
		tb.Fatalf("the files have %d and %d entries", len(x), len(y))
	}
	for i := range x {
		if !bytes.Equal(x[i], y[i]) {
			tb.Fatalf("entry %d differs", i)
		}
	}
}

func contents(tb testing.TB, data []byte) (all [][]byte) {
	tb.Helper()
	s := newE2store(bytes.NewReader(data), int64(len(data)))
	entries, _, err := s.entries()
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		content := data[e.data():e.end()]
		switch e.kind {
		case kindHeader, kindBody, kindReceipts, kindSlimReceipts:
			var out bytes.Buffer
			if err := s.unzip(&out, e, maxBodySize); err != nil {
				tb.Fatal(err)
			}
			content = out.Bytes()
		}
		all = append(all, content)
	}
	return all
}

// refused is a file with one thing wrong.
type refused struct {
	name  string
	want  string // in the error
	build func(a *archive) []byte
}

// testRefused expects of each file that nothing of it is returned but what it says.
func testRefused(t *testing.T, chain *eratest.Chain, blocks int, tests []refused) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data := test.build(newArchive(t, chain))
			got, err := readAll(data)
			if len(got) != blocks {
				t.Errorf("%d blocks came out, want %d", len(got), blocks)
			}
			var at *Error
			if !errors.As(err, &at) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got the error %v, want %q", err, test.want)
			}
			if at.Offset < 0 || at.Offset > int64(len(data)) {
				t.Errorf("the fault is at byte %d of %d", at.Offset, len(data))
			}
		})
	}
}
