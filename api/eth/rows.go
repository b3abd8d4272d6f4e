package eth

import (
	"context"
	"fmt"
	"sync"

	"ashlar/archive"
	"ashlar/query"

	"github.com/holiman/uint256"
)

// rowBufferBytes is the capacity of a fresh buffer for a stored row: more than
// nearly every block's body or receipts need.
const rowBufferBytes = 128 << 10

// rowBuffers keeps buffers for stored rows, so that reading a block allocates next to nothing.
type rowBuffers struct{ pool sync.Pool }

// take returns an empty buffer that is to be given back when nothing refers to it any more.
func (r *rowBuffers) take() *[]byte {
	if buffer, ok := r.pool.Get().(*[]byte); ok {
		return buffer
	}
	buffer := make([]byte, 0, rowBufferBytes)
	return &buffer
}

func (r *rowBuffers) give(buffer *[]byte) { r.pool.Put(buffer) }

// block is a block with what the encoders need of it. Its body and receipts lie
// in buffers of the API until release.
type block struct {
	*archive.Header
	body     *archive.Body
	receipts *archive.Receipts // nil unless asked for
	baseFee  *uint256.Int      // nil before London
	pending  bool              // nobody is to be told its number and its hash
	blooms   bloomMaker
	place    []byte   // of its transactions, see appendPlace
	logPlace logPlace // of the log that is being encoded

	api                      *API
	bodyBuffer, receiptsRoom *[]byte
}

// blockReader reads a block: [API.block] or [API.blockWithReceipts].
type blockReader func(ctx context.Context, view *query.View, number uint64) (*block, error)

// block reads the header and the body of a block.
func (a *API) block(ctx context.Context, view *query.View, number uint64) (*block, error) {
	header, err := view.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	b := &block{Header: header, pending: view.IsPending(number), api: a, bodyBuffer: a.rows.take()}
	if header.BaseFee != nil {
		var overflow bool
		if b.baseFee, overflow = uint256.FromBig(header.BaseFee); overflow {
			b.release()
			return nil, fmt.Errorf("%w: base fee %d of block %d", archive.ErrCorrupt, header.BaseFee, number)
		}
	}
	if b.body, err = view.Body(ctx, number, *b.bodyBuffer); err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// blockWithReceipts reads the header, the body and the receipts of a block.
func (a *API) blockWithReceipts(ctx context.Context, view *query.View, number uint64) (*block, error) {
	b, err := a.block(ctx, view, number)
	if err != nil {
		return nil, err
	}
	b.receiptsRoom = a.rows.take()
	b.receipts, err = view.Receipts(ctx, number, *b.receiptsRoom)
	if err == nil && b.receipts.Len() != b.body.Len() {
		err = fmt.Errorf("%w: block %d has %d receipts for %d transactions", archive.ErrCorrupt, number, b.receipts.Len(), b.body.Len())
	}
	if err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// release gives the block's buffers back. Nothing of the block may be used afterwards.
func (b *block) release() {
	b.api.rows.give(b.bodyBuffer)
	if b.receiptsRoom != nil {
		b.api.rows.give(b.receiptsRoom)
	}
}
