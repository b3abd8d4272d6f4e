package api

import (
	"bytes"
	"math/big"
	"reflect"
	"runtime"
	"testing"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A cache of many small blocks is not larger than it is meant to be.
func TestHashesOfSmallBlocks(t *testing.T) {
	cache := newHashCache()
	if hashes, err := cache.of(common.Hash{1}, new(archive.Body)); len(hashes) != 0 || err != nil {
		t.Errorf("hashes of an empty block: %x, %v", hashes, err)
	}
	if size := cache.blocks.Size(); size != 0 {
		t.Errorf("an empty block takes %d bytes, want none", size)
	}
	cache.blocks.Add(common.Hash{2}, make(outline, common.HashLength))
	if size := cache.blocks.Size(); size != cachedBlockBytes+common.HashLength {
		t.Errorf("a block of one transaction counts as %d bytes, want %d with its entry", size, cachedBlockBytes+common.HashLength)
	}
}

// An outline takes no more memory than the cache counts.
func TestMemoryOfOutlines(t *testing.T) {
	const kept, most = 5000, 2 * common.HashLength
	block := types.NewBlockWithHeader(&types.Header{Number: big.NewInt(7), Difficulty: new(big.Int)})
	block = block.WithBody(types.Body{Transactions: types.Transactions{types.NewTx(&types.LegacyTx{})}})
	body, err := archive.NewBody(block, make([]common.Address, 1))
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() uint64 {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	outlines := make([]outline, kept)
	before := inUse()
	for i := range outlines {
		if outlines[i], err = newOutline(&body); err != nil {
			t.Fatal(err)
		}
	}
	each := int(inUse()-before) / kept
	if len(outlines[0]) > most || each > most {
		t.Errorf("an outline of %d bytes takes %d bytes of memory, want %d at most", len(outlines[0]), each, most)
	}
	runtime.KeepAlive(outlines)
}

// An outline has the hashes, the uncles and the withdrawals of its block.
func TestOutline(t *testing.T) {
	header := &types.Header{Number: big.NewInt(7), Difficulty: new(big.Int)}
	contents := types.Body{
		Uncles:      []*types.Header{{Number: big.NewInt(6), Difficulty: big.NewInt(1), Extra: []byte("uncle")}},
		Withdrawals: types.Withdrawals{{Index: 1, Validator: 2, Address: common.Address{3}, Amount: 4}},
	}
	for nonce := range uint64(200) {
		contents.Transactions = append(contents.Transactions, types.NewTx(&types.LegacyTx{Nonce: nonce}))
	}
	body, err := archive.NewBody(types.NewBlockWithHeader(header).WithBody(contents), make([]common.Address, len(contents.Transactions)))
	if err != nil {
		t.Fatal(err)
	}
	made, err := newOutline(&body)
	if err != nil {
		t.Fatal(err)
	}
	hashes := made.hashes()
	if hashes.len() != len(contents.Transactions) {
		t.Fatalf("%d hashes, expected %d", hashes.len(), len(contents.Transactions))
	}
	for i, tx := range contents.Transactions {
		if want := tx.Hash(); !bytes.Equal(hashes.hash(i), want[:]) {
			t.Errorf("transaction %d: hash %x, expected %x", i, hashes.hash(i), want)
		}
	}
	annex, err := made.annex()
	if err != nil {
		t.Fatal(err)
	}
	uncles, err := annex.Uncles()
	if err != nil || len(uncles) != 1 || uncles[0].Hash() != contents.Uncles[0].Hash() {
		t.Errorf("uncles %v, %v", uncles, err)
	}
	if withdrawals, err := annex.Withdrawals(); err != nil || !reflect.DeepEqual(withdrawals, types.Withdrawals(contents.Withdrawals)) {
		t.Errorf("withdrawals %v, %v", withdrawals, err)
	}
	if _, err := made[:len(made)-1].annex(); err == nil {
		t.Error("an outline that is cut off has an annex")
	}
}
