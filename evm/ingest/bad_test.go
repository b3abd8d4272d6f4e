package ingest_test

import (
	"testing"

	"ashlar/chain"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/core/types"
)

// TestBadBlocks gives a follower invalid blocks, some of them twice, and expects the last
// ten with the highest first, and none that can be judged later.
func TestBadBlocks(t *testing.T) {
	blocks := ingesttest.Chain(t)
	f := newFollowed(t, ingest.DefaultDepths())
	f.follow(blocks[0])
	if bad := f.follower.BadBlocks(); len(bad) != 0 {
		t.Fatalf("%d bad blocks at first", len(bad))
	}
	var sent []chain.Ref
	for i := range 12 {
		if i == 6 {
			f.follow(blocks[1])
		}
		on := blocks[1+i/6]
		header := on.Header()
		header.Root[i]++
		wrong := types.NewBlockWithHeader(header).WithBody(*on.Body())
		for range 2 {
			if err := f.follower.Add(t.Context(), wrong); err == nil {
				t.Fatalf("block %d was added", i)
			}
		}
		sent = append(sent, chain.Ref{Number: wrong.NumberU64(), Hash: wrong.Hash()})
	}
	if err := f.follower.Add(t.Context(), blocks[9]); err == nil {
		t.Fatal("a block without a parent was added")
	}
	bad := f.follower.BadBlocks()
	if len(bad) != 10 {
		t.Fatalf("%d bad blocks, expected 10", len(bad))
	}
	want := append(sent[6:12:12], sent[2:6]...) // the highest first, as they came
	for i, b := range bad {
		if got := (chain.Ref{Number: b.Number, Hash: b.Hash}); got != want[i] || b.Block.Hash() != b.Hash {
			t.Errorf("bad block %d is %+v with block %s, expected %+v", i, got, b.Block.Hash(), want[i])
		}
	}
}
