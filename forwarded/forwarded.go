// Package forwarded defines the data types of networks whose answers come from other nodes: a
// [Block] as a node sent it, and a [View], the newest blocks at one moment.
//
// The packages below are, in the order in which a question passes them: network opens a
// network of the family, api has its methods, query answers them as of a view, check
// recomputes what answers say of a block, archive keeps answers that cannot change, and
// ingest follows the head that the nodes name.
package forwarded

import (
	"encoding/json"
	"errors"
	"fmt"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// Block is a block without its transactions.
type Block struct {
	chain.Ref
	Parent common.Hash
	Time   uint64          // Unix seconds
	Bloom  *types.Bloom    // of its logs; nil if the node does not say
	JSON   json.RawMessage // as eth_getBlockByHash returned it, with hashes of transactions
}

// ParentRef returns the parent's number and hash.
func (b *Block) ParentRef() chain.Ref {
	return chain.Ref{Number: max(b.Number, 1) - 1, Hash: b.Parent}
}

// DecodeBlock decodes a block that a node sent. It returns nil for null.
func DecodeBlock(answer json.RawMessage) (*Block, error) {
	var decoded *struct {
		Number *hexutil.Uint64 `json:"number"`
		Hash   *common.Hash    `json:"hash"`
		Parent *common.Hash    `json:"parentHash"`
		Time   hexutil.Uint64  `json:"timestamp"`
		Bloom  json.RawMessage `json:"logsBloom"`
	}
	if err := json.Unmarshal(answer, &decoded); err != nil {
		return nil, fmt.Errorf("decode a block: %w", err)
	}
	if decoded == nil {
		return nil, nil
	}
	if decoded.Number == nil || decoded.Hash == nil || decoded.Parent == nil {
		return nil, errors.New("decode a block: it has no number, hash or parent")
	}
	block := &Block{Ref: chain.Ref{Number: uint64(*decoded.Number), Hash: *decoded.Hash}, Parent: *decoded.Parent, Time: uint64(decoded.Time), JSON: answer}
	var bloom *types.Bloom
	if json.Unmarshal(decoded.Bloom, &bloom) == nil {
		block.Bloom = bloom
	}
	return block, nil
}

// View is the newest blocks of a chain at one moment, each the parent of the next. It never
// changes.
type View struct {
	blocks          []*Block
	numbers         map[common.Hash]uint64
	safe, finalized uint64 // 0: not known
}

// NewView returns a view of blocks, of which there is at least one. safe and finalized are 0
// if the nodes know no such block.
func NewView(blocks []*Block, safe, finalized uint64) *View {
	v := &View{blocks: blocks, numbers: make(map[common.Hash]uint64, len(blocks)), safe: safe, finalized: finalized}
	for _, b := range blocks {
		v.numbers[b.Hash] = b.Number
	}
	return v
}

// Head returns the last block.
func (v *View) Head() *Block { return v.blocks[len(v.blocks)-1] }

// Blocks returns the blocks, in ascending order. They must not be changed.
func (v *View) Blocks() []*Block { return v.blocks }

// Safe and Finalized return the numbers of the safe and the finalized block, and false if the
// nodes know none.
func (v *View) Safe() (uint64, bool)      { return v.safe, v.safe > 0 }
func (v *View) Finalized() (uint64, bool) { return v.finalized, v.finalized > 0 }

// IsFinal reports whether no reorganization can replace the block with a number.
func (v *View) IsFinal(number uint64) bool { return number <= v.finalized && v.finalized > 0 }

// At returns the block with a number, if it is one of the newest.
func (v *View) At(number uint64) (*Block, bool) {
	first := v.blocks[0].Number
	if number < first || number > v.Head().Number {
		return nil, false
	}
	return v.blocks[number-first], true
}

// Number returns the number of the block with a hash, if it is one of the newest.
func (v *View) Number(hash common.Hash) (uint64, bool) {
	number, ok := v.numbers[hash]
	return number, ok
}

// Changes returns the blocks that lead from one view to another: those that were dropped,
// newest first, and those that were added, oldest first. It returns false if the views have
// no common block.
func Changes(from, to *View) (dropped, added []*Block, ok bool) {
	common := len(from.blocks)
	for common > 0 {
		if _, both := to.Number(from.blocks[common-1].Hash); both {
			break
		}
		common--
		dropped = append(dropped, from.blocks[common])
	}
	if common == 0 {
		return nil, nil, false
	}
	first := to.blocks[0].Number
	return dropped, to.blocks[from.blocks[common-1].Number+1-first:], true
}
