package blockhash

import (
	"sync"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// treeHeight is that of the trees over a block's transactions, events and receipts.
const treeHeight = 64

// hash is one of the two hash functions.
type hash interface {
	pair(a, b *fp.Element) fp.Element
}

// treeRoot is the root of a Merkle-Patricia tree of bits with a leaf for each
// index. An empty tree has the root 0.
//
// The leaves fill the tree from the left without gaps. So the largest whole
// power of two of them that is not all of them is a left subtree, and the only
// edge that skips levels leads left from the top, or, in the right subtrees,
// from where few leaves are left.
func treeRoot(h hash, leaves []fp.Element) fp.Element { return subtreeRoot(h, leaves, treeHeight) }

func subtreeRoot(h hash, leaves []fp.Element, height int) fp.Element {
	if len(leaves) == 0 {
		return fp.Element{}
	}
	low := 0 // the height at which the leaves need both sides of a tree
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
	if skipped := height - low; skipped > 0 { // an edge to the left: its path is 0
		root = h.pair(&root, &fp.Element{})
		length := fp.NewElement(uint64(skipped))
		root.Add(&root, &length)
	}
	return root
}
