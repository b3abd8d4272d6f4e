package tip

import (
	"ashlar/chain"
	"ashlar/kv"
)

// Branch is the chain from the settled block up to a block of the tip, or just the settled
// block. It is immutable.
type Branch struct {
	settled chain.Ref
	blocks  []*Block // ascending, from settled.Number+1
	layers  []branchLayer
}

// branchLayer holds the rows of consecutive blocks of a branch. It may include blocks that
// have been settled.
type branchLayer struct {
	*layer
	oldest uint64 // first block in the layer
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

// Ref returns the last block of the branch.
func (b *Branch) Ref() chain.Ref {
	if len(b.blocks) == 0 {
		return b.settled
	}
	return b.blocks[len(b.blocks)-1].ref
}

// Settled returns the settled block on which the branch is based. The archive may have
// settled more since.
func (b *Branch) Settled() chain.Ref { return b.settled }

// At returns the block with a number; false if the number is below the settled block or
// above the end of the branch.
func (b *Branch) At(number uint64) (chain.Ref, bool) {
	if number == b.settled.Number {
		return b.settled, true
	}
	if number < b.settled.Number || number > b.Ref().Number {
		return chain.Ref{}, false
	}
	return b.blocks[number-b.settled.Number-1].ref, true
}

// Refs returns the blocks from the settled one to the end of the branch, and keeps nothing else of it.
func (b *Branch) Refs() []chain.Ref {
	refs := []chain.Ref{b.settled}
	for _, block := range b.blocks {
		refs = append(refs, block.ref)
	}
	return refs
}

func (b *Branch) upTo(number uint64) []*Block {
	if number <= b.settled.Number {
		return nil
	}
	n := min(uint64(len(b.blocks)), number-b.settled.Number)
	return b.blocks[:n:n]
}

// Over returns a reader of the branch's rows, overlaid on the archive's rows. Blocks that
// the archive has settled since the branch was created are not visible in it.
func (b *Branch) Over(rows kv.Reader) kv.Reader { return &reader{below: rows, branch: b} }
