package ingest

import (
	"math/big"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

func TestUnsettledNodes(t *testing.T) {
	var u unsettledNodes
	hash := func(block byte) common.Hash { return common.Hash{block} }
	check := func(when string, want ...byte) {
		t.Helper()
		for block := byte(1); block <= 6; block++ {
			blob, ok := u.find(hash(block))
			wanted := len(want) > 0 && want[0] == block
			if wanted {
				want = want[1:]
			}
			if ok != wanted || ok && string(blob) != string(rune(block)) {
				t.Errorf("%s: the node of block %d is %q, %t (want %t)", when, block, blob, ok, wanted)
			}
		}
	}
	add := func(blocks ...byte) {
		for _, block := range blocks {
			u.add([]evm.Node{{Hash: hash(block), Blob: []byte(string(rune(block)))}, {Path: "gone"}}, uint64(block))
		}
	}
	add(1, 2)
	check("before anything is settled", 1, 2)
	u.settle(0)
	add(3, 4)
	check("two generations", 1, 2, 3, 4)
	u.settle(1)
	check("a part of the old generation is settled", 1, 2, 3, 4)
	u.settle(3)
	check("the old generation is settled, and a part of the young one", 3, 4)
	add(5, 6)
	check("a new generation", 3, 4, 5, 6)
	u.settle(6)
	check("all is settled, and one generation left", 5, 6)
	u.settle(6)
	check("nothing is left")
	if _, ok := u.find(common.Hash{}); ok {
		t.Error("a node that is gone was found")
	}
}

// TestNodeAfterTries: where blocks begin to be rooted after their execution, a node is the one that
// the last block wrote, whichever way.
func TestNodeAfterTries(t *testing.T) {
	l := newLatest(nil, sharesOf(1<<20))
	rooted := func(block int64, hash byte, inline bool) {
		l.rooted(&evm.Delta{
			Block: types.NewBlockWithHeader(&types.Header{Number: big.NewInt(block)}),
			Nodes: []evm.Node{{Path: "\x01", Hash: common.Hash{hash}, Blob: []byte{hash}}},
		}, inline)
	}
	for i, inline := range []bool{true, true, false, false} {
		hash := byte(i + 1)
		rooted(int64(i), hash, inline)
		blob, err := l.Node(t.Context(), common.Hash{}, []byte{1}, common.Hash{hash})
		if err != nil || len(blob) != 1 || blob[0] != hash {
			t.Errorf("the node of block %d is %x, %v (want %x)", i, blob, err, hash)
		}
	}
}
