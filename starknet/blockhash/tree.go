package blockhash

import (
	"sync"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// treeHeight is the height of the trees over a block's transactions, events and receipts.
const treeHeight = 64

// hash is Pedersen or Poseidon.
type hash interface {
	pair(a, b *fp.Element) fp.Element
}

// treeRoot returns the root of a binary Merkle-Patricia tree with the leaves at indices 0, 1, 2
// and so on. The root of an empty tree is 0.
//
// The leaves fill the tree from the left without gaps, so the largest power of two below their
// number forms a complete left subtree. The only edges that skip levels lead left, from the
// top or, in right subtrees, to the remaining leaves.
func treeRoot(h hash, leaves []fp.Element) fp.Element { return subtreeRoot(h, leaves, treeHeight) }

func subtreeRoot(h hash, leaves []fp.Element, height int) fp.Element {
	if len(leaves) == 0 {
		return fp.Element{}
	}
	low := 0 // the height of the smallest tree that holds all leaves
	for len(leaves) > 1<<low {
		low++
	}
	root := leaves[0]
	if low > 0 {
		half := 1 << (low - 1)
		halves := [2][]fp.Element{leaves[:half], leaves[half:]}
		var roots [2]fp.Element
		side := func(i int) { roots[i] = subtreeRoot(h, halves[i], low-1) }
		if half < hashesAtOnce {
			side(0)
			side(1)
		} else {
			var left sync.WaitGroup
			left.Go(func() { side(0) })
			side(1)
			left.Wait()
		}
		root = h.pair(&roots[0], &roots[1])
	}
	if skipped := height - low; skipped > 0 { // a left edge: its path is 0
		root = h.pair(&root, &fp.Element{})
		length := fp.NewElement(uint64(skipped))
		root.Add(&root, &length)
	}
	return root
}
