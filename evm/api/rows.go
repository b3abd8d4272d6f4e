package api

import (
	"context"
	"fmt"
	"io"
	"sync"

	"ashlar/evm/archive"
	"ashlar/evm/query"

	"github.com/holiman/uint256"
)

// block is a block prepared for encoding. Its body and receipts refer to stored rows until
// release.
type block struct {
	*archive.Header
	body     archive.Body
	hashes   transactionHashes // of a block without its body, or not on the chain; else nil, see [hashCache]
	receipts archive.Receipts  // empty unless requested
	baseFee  *uint256.Int      // nil before London
	pending  bool              // its number and hash are not shown
	dropped  bool              // removed by a reorganization
	*workspace

	api  *API
	held [2]io.Closer // the rows of the body and the receipts, nil if not read
}

// workspace is the scratch memory for encoding a block. It is reused.
type workspace struct {
	fee      uint256.Int // storage for the block's base fee
	hasher   hasher
	blooms   bloomMaker
	place    []byte   // encoded position of the block's transactions, see appendPlace; empty until needed
	logPlace logPlace // position of the log being encoded; set for the first log
}

// workspaces is a pool of workspaces.
type workspaces struct{ pool sync.Pool }

// take returns a workspace, which must be returned to the pool.
func (w *workspaces) take() *workspace {
	if kept, ok := w.pool.Get().(*workspace); ok {
		return kept
	}
	return new(workspace)
}

func (w *workspaces) give(used *workspace) {
	used.place = used.place[:0]
	used.logPlace.leave()
	w.pool.Put(used)
}

// blockReader reads a block: [API.block], [API.outlined] or [API.blockWithReceipts].
type blockReader func(ctx context.Context, view *query.View, number uint64) (*block, error)

// block reads the header and the body of a block.
func (a *API) block(ctx context.Context, view *query.View, number uint64) (*block, error) {
	view.ReadAhead(ctx, number, false)
	b, err := a.header(ctx, view, number)
	if err != nil {
		return nil, err
	}
	return b.withBody(ctx, view)
}

// outlined reads the header of a block and, if they are cached, the hashes of its transactions.
// Otherwise it reads the body.
func (a *API) outlined(ctx context.Context, view *query.View, number uint64) (*block, error) {
	view.ReadAhead(ctx, number, false)
	b, err := a.header(ctx, view, number)
	if err != nil {
		return nil, err
	}
	found, ok := a.hashes.blocks.Get(b.Hash)
	if !ok {
		return b.withBody(ctx, view)
	}
	b.hashes = found.hashes()
	if b.body.Annex, err = found.annex(); err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// header reads the header of a block.
func (a *API) header(ctx context.Context, view *query.View, number uint64) (*block, error) {
	header, err := view.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	b := &block{Header: header, pending: view.IsPending(number), dropped: view.IsDropped(number), api: a, workspace: a.workspaces.take()}
	if header.BaseFee != nil {
		if b.fee.SetFromBig(header.BaseFee) {
			b.release()
			return nil, fmt.Errorf("%w: base fee %d of block %d", archive.ErrCorrupt, header.BaseFee, number)
		}
		b.baseFee = &b.fee
	}
	return b, nil
}

// withBody returns the block with its body. After an error, it is released.
func (b *block) withBody(ctx context.Context, view *query.View) (_ *block, err error) {
	if b.body, b.held[0], err = view.HoldBody(ctx, b.Number.Uint64()); err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// blockWithReceipts reads the header, the body and the receipts of a block.
func (a *API) blockWithReceipts(ctx context.Context, view *query.View, number uint64) (*block, error) {
	view.ReadAhead(ctx, number, true)
	b, err := a.block(ctx, view, number)
	if err != nil {
		return nil, err
	}
	b.receipts, b.held[1], err = view.HoldReceipts(ctx, number)
	if err == nil && b.receipts.Len() != b.body.Len() {
		err = fmt.Errorf("%w: block %d has %d receipts for %d transactions", archive.ErrCorrupt, number, b.receipts.Len(), b.body.Len())
	}
	if err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// release releases the stored rows. The block must not be used afterwards.
func (b *block) release() {
	b.api.workspaces.give(b.workspace)
	for _, row := range b.held {
		if row != nil {
			_ = row.Close() // only read
		}
	}
}
