package ingest_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/source/file"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/core/types"
)

const siblingDepth = 10 // blocks of each sibling

func readExport(t *testing.T, path string) (blocks []*types.Block) {
	t.Helper()
	export, err := file.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer export.Close()
	for {
		block, err := export.Next()
		if errors.Is(err, io.EOF) {
			return blocks
		}
		if err != nil {
			t.Fatal(err)
		}
		if block.NumberU64() > 0 {
			blocks = append(blocks, block)
		}
	}
}

// orders lists the orders of the numbers below n.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, shorter := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

// TestSiblingsInEveryOrder follows five branches that leave each other at the genesis,
// one after the other in every order, and shorter ones in between. Whichever is final
// in the end, the store holds row by row what an import of that branch alone does.
func TestSiblingsInEveryOrder(t *testing.T) {
	folder := vectors.Path(t, "chains", "reorg-branches")
	g, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	var siblings [][]*types.Block
	var imported []map[string]string
	for i := range 5 {
		blocks := readExport(t, filepath.Join(folder, fmt.Sprintf("blocks_10_td_1971072_%d.rlp", i+1)))
		if len(blocks) != siblingDepth {
			t.Fatalf("sibling %d has %d blocks", i+1, len(blocks))
		}
		alone := newTargetOf(t, g)
		alone.mustImport(blocks)
		siblings, imported = append(siblings, blocks), append(imported, alone.rows())
	}
	var others [][]*types.Block
	for _, name := range []string{"blocks_1_td_196416", "blocks_2_td_393120", "blocks_2_td_393504"} {
		others = append(others, readExport(t, filepath.Join(folder, name+".rlp")))
	}
	for i, order := range orders(len(siblings)) {
		f := &followed{target: newTargetOf(t, g), depths: ingest.Depths{Unfinalized: 100, Most: 100}}
		f.restart()
		for _, sibling := range order {
			f.follow(siblings[sibling]...)
			f.follow(others[i%len(others)]...)
		}
		f.restart() // and the tip is as it was
		for _, sibling := range order {
			f.setHead(siblings[sibling][siblingDepth-1])
		}
		last := order[len(order)-1]
		head := siblings[last][siblingDepth-1]
		if err := f.follower.SetHead(t.Context(), head.Hash(), chain.Ref{}, ref(head)); err != nil {
			t.Fatal(err)
		}
		f.settle(siblingDepth)
		if !maps.Equal(f.rows(), imported[last]) {
			t.Errorf("order %v: the store has other rows than after an import of the last alone", order)
		}
	}
}
