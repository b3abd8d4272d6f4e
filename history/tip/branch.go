package tip

import (
	"ashlar/chain"
	"ashlar/kv"
)

// Branch is the chain from the settled block up to one block of the tip, or to
// the settled block itself. It does not change.
type Branch struct {
	settled chain.Ref
	blocks  []*Block // from settled.Number+1 on
	layers  []branchLayer
}

// branchLayer holds the rows of some blocks of a branch, and perhaps of blocks
// below it, which are settled.
type branchLayer struct {
	*layer
	oldest uint64 // the first block whose rows are in it
}

func newBranch(settled chain.Ref, blocks []*Block) *Branch {
	b := &Branch{settled: settled, blocks: blocks}
	for i := len(blocks) - 1; i >= 0; i-- {
		block := blocks[i]
		if block.merged == nil {
			b.layers = append(b.layers, branchLayer{block.layer, block.ref.Number})
			continue
		}
		b.layers = append(b.layers, branchLayer{block.merged, block.oldest})
		i -= int(block.ref.Number - block.oldest)
	}
	return b
}

// Ref is the last block of the branch.
func (b *Branch) Ref() chain.Ref {
	if len(b.blocks) == 0 {
		return b.settled
	}
	return b.blocks[len(b.blocks)-1].ref
}

// Settled is the settled block that the branch stands on. The archive may have
// settled more since.
func (b *Branch) Settled() chain.Ref { return b.settled }

// At is the block of the branch with that number; false when it lies below the
// settled block or above the branch.
func (b *Branch) At(number uint64) (chain.Ref, bool) {
	if number == b.settled.Number {
		return b.settled, true
	}
	if number < b.settled.Number || number > b.Ref().Number {
		return chain.Ref{}, false
	}
	return b.blocks[number-b.settled.Number-1].ref, true
}

// Blocks are the blocks of the branch above the settled one, in ascending order.
// The caller must not change the slice.
func (b *Branch) Blocks() []*Block { return b.blocks }

func (b *Branch) upTo(number uint64) []*Block {
	if number <= b.settled.Number {
		return nil
	}
	n := min(uint64(len(b.blocks)), number-b.settled.Number)
	return b.blocks[:n:n]
}

// Over reads the rows of the branch and, below it, those of the archive that rows
// reads. What the archive has settled since above the branch's settled block is
// not seen.
func (b *Branch) Over(rows kv.Reader) kv.Reader { return &reader{below: rows, branch: b} }
