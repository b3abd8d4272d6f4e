package tip

import (
	"encoding/binary"
	"fmt"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// Rows collects the rows of a block. It is for use by one goroutine.
type Rows struct{ encoded []byte }

// Put adds a row. It copies its arguments.
func (r *Rows) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	r.encoded = binary.AppendUvarint(r.encoded, uint64(1+len(partition)))
	r.encoded = append(append(r.encoded, t.ID), partition...)
	r.encoded = binary.AppendUvarint(r.encoded, sort)
	r.encoded = append(binary.AppendUvarint(r.encoded, uint64(len(value))), value...)
}

// mergeEvery is how many blocks share a merged layer. Merging bounds the number of layers
// to search for a row that a long branch does not have.
const mergeEvery = 16

// Block is a block of the tip, with its rows.
type Block struct {
	ref     chain.Ref
	parent  common.Hash
	encoded []byte // the rows, as stored
	tables  *tables
	layer   *layer
	// merged holds the rows of the blocks from oldest to this one. It is nil unless the
	// block's number is a multiple of mergeEvery, so that all branches above the block share
	// it.
	merged *layer
	oldest uint64
}

// newBlock decodes the rows of a block.
func newBlock(ref chain.Ref, parent common.Hash, encoded []byte, tables *tables) (*Block, error) {
	rows, err := decodeRows(encoded, tables)
	if err != nil {
		return nil, fmt.Errorf("block %s: %w", ref, err)
	}
	return &Block{ref: ref, parent: parent, encoded: encoded, tables: tables, layer: newLayer(rows)}, nil
}

// Ref returns the number and hash of the block.
func (b *Block) Ref() chain.Ref { return b.ref }

// Parent returns the hash of the parent block.
func (b *Block) Parent() common.Hash { return b.parent }

// PutRows puts all rows of the block.
func (b *Block) PutRows(to kv.Putter) {
	for _, row := range b.layer.rows {
		to.Put(b.tables[row.key[0]], row.key[1:], row.sort, row.value)
	}
}

// eachRow calls visit with all rows of the block until it returns false, and reports whether it
// did not.
func (b *Block) eachRow(visit func(*kv.Table, kv.Row) bool) bool {
	for _, row := range b.layer.rows {
		if !visit(b.tables[row.key[0]], kv.Row{Partition: row.key[1:], Sort: row.sort, Value: row.value}) {
			return false
		}
	}
	return true
}

// merge sets merged, for a block whose number is a multiple of mergeEvery.
func (b *Block) merge(known map[common.Hash]*Block) {
	rows := make([]row, 0, 2*len(b.layer.rows))
	b.oldest = b.ref.Number
	for block := b; block != nil; block = known[block.parent] {
		if block != b && block.ref.Number%mergeEvery == 0 {
			break
		}
		rows = append(rows, block.layer.rows...)
		b.oldest = block.ref.Number
	}
	b.merged = newLayer(rows)
}
