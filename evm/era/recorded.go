package era

import (
	"io"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Header returns the header of a block and its hash, or nil if the file does not have it.
func (r *Reader) Header(number uint64) (*types.Header, common.Hash) {
	blocks := r.Range()
	if number < blocks.First || number > blocks.Last {
		return nil, common.Hash{}
	}
	at := &r.blocks[number-blocks.First]
	return at.header, at.hash
}

// NextRecorded is Next with the receipts of the block. They have their blooms.
func (r *Reader) NextRecorded() (*types.Block, types.Receipts, error) {
	if r.next == len(r.blocks) {
		return nil, nil, io.EOF
	}
	from := &r.blocks[r.next]
	block, err := r.Next() // leaves the receipts in r.buf
	if err != nil {
		return nil, nil, err
	}
	var receipts types.Receipts
	if from.receipts.kind == kindSlimReceipts {
		var decoded types.DerivableList
		if decoded, err = decodeSlimReceipts(r.buf.Bytes()); err == nil {
			receipts = decoded.(types.Receipts)
		}
	} else {
		err = rlp.DecodeBytes(r.buf.Bytes(), &receipts)
	}
	if err != nil {
		return nil, nil, r.fault(from, from.receipts, err)
	}
	return block, receipts, nil
}
