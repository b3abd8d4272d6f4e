package tip

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

// tree is a snapshot of a tip. It is immutable once published.
type tree struct {
	settled         chain.Ref
	blocks          map[common.Hash]*Block
	head            *Branch
	safe, finalized chain.Ref // zero while unknown
	// sequence grows with each change of the head, safe or finalized block. It orders what
	// several processes show.
	sequence uint64
}

// sameForkchoice reports whether two trees have the same head, safe and finalized blocks.
func (n *tree) sameForkchoice(other *tree) bool {
	return n.head.Ref() == other.head.Ref() && n.safe == other.safe && n.finalized == other.finalized
}

// copy returns a copy of the tree that can be modified.
func (n *tree) copy() *tree {
	next := *n
	next.blocks = maps.Clone(n.blocks)
	return &next
}

// add adds a block whose parent is in the tree or settled.
func (n *tree) add(block *Block) {
	if block.ref.Number%mergeEvery == 0 {
		block.merge(n.blocks)
	}
	n.blocks[block.ref.Hash] = block
}

// branch returns the branch from the settled block to the block with a hash.
func (n *tree) branch(hash common.Hash) (*Branch, error) {
	if hash == n.settled.Hash {
		return newBranch(n.settled, nil), nil
	}
	block := n.blocks[hash]
	if block == nil {
		return nil, fmt.Errorf("%w: %x", ErrUnknownBlock, hash)
	}
	blocks := make([]*Block, block.ref.Number-n.settled.Number)
	for i := len(blocks) - 1; i >= 0; i-- {
		blocks[i], block = block, n.blocks[block.parent]
	}
	return newBranch(n.settled, blocks), nil
}

// settle sets the settled block, removes the blocks that do not descend from it, and
// returns their hashes.
func (n *tree) settle(ref chain.Ref) (gone []common.Hash) {
	n.settled = ref
	return n.drop(func(block *Block) bool { return block.ref.Number <= ref.Number })
}

// prune removes blocks while there are most or more, except for the branches of the head
// and of keep. It returns their hashes.
func (n *tree) prune(most int, keep []common.Hash) (gone []common.Hash) {
	kept := make(map[common.Hash]bool)
	for _, end := range append([]common.Hash{n.head.Ref().Hash}, keep...) {
		for block := n.blocks[end]; block != nil; block = n.blocks[block.parent] {
			kept[block.ref.Hash] = true
		}
	}
	return n.drop(func(block *Block) bool { return len(n.blocks) >= most && !kept[block.ref.Hash] })
}

// drop removes unwanted blocks and blocks whose parent is missing, and returns their
// hashes. It calls unwanted for blocks in ascending order.
func (n *tree) drop(unwanted func(*Block) bool) (gone []common.Hash) {
	ascending := slices.SortedFunc(maps.Values(n.blocks), func(a, b *Block) int {
		return cmp.Or(cmp.Compare(a.ref.Number, b.ref.Number), a.ref.Hash.Cmp(b.ref.Hash))
	})
	for _, block := range ascending {
		orphan := block.parent != n.settled.Hash && n.blocks[block.parent] == nil
		if orphan || unwanted(block) {
			delete(n.blocks, block.ref.Hash)
			gone = append(gone, block.ref.Hash)
		}
	}
	return gone
}
