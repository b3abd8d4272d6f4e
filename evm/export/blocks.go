package export

import (
	"context"
	"fmt"
	"math/big"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Blocks are those of an archive in the form that other programs read. It implements
// [era.Blocks].
type Blocks struct {
	archive *archive.Archive
	body    []byte // buffers of rows
	receipt []byte
}

// NewBlocks returns the blocks of an archive. They belong to one goroutine.
func NewBlocks(a *archive.Archive) *Blocks { return &Blocks{archive: a} }

// Header implements [era.Blocks].
func (b *Blocks) Header(ctx context.Context, number uint64) ([]byte, *big.Int, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	header, err := b.archive.Header(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	return header.RLP, header.TotalDifficulty, nil
}

// Body implements [era.Blocks].
func (b *Blocks) Body(ctx context.Context, number uint64) ([]byte, error) {
	body, header, err := b.read(ctx, number)
	if err != nil {
		return nil, err
	}
	block, err := body.Block(header.Header)
	if err != nil {
		return nil, err
	}
	return rlp.EncodeToBytes(block.Body())
}

// Receipts implements [era.Blocks].
func (b *Blocks) Receipts(ctx context.Context, number uint64) (types.Receipts, error) {
	body, _, err := b.read(ctx, number)
	if err != nil {
		return nil, err
	}
	stored, err := b.archive.Receipts(ctx, number, b.receipt[:0])
	if err != nil {
		return nil, err
	}
	if stored.Len() != body.Len() {
		return nil, fmt.Errorf("%w: block %d has %d transactions and %d receipts", archive.ErrCorrupt, number, body.Len(), stored.Len())
	}
	receipts := make(types.Receipts, stored.Len())
	for i := range receipts {
		raw, err := body.Transaction(i)
		if err != nil {
			return nil, err
		}
		if receipts[i], err = stored.Whole(i, transactionType(raw)); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// transactionType is that of an encoded transaction (EIP-2718).
func transactionType(raw []byte) byte {
	if len(raw) > 0 && raw[0] < 0x80 {
		return raw[0]
	}
	return types.LegacyTxType
}

func (b *Blocks) read(ctx context.Context, number uint64) (*archive.Body, *archive.Header, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	header, err := b.archive.Header(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	body, err := b.archive.Body(ctx, number, b.body[:0])
	return body, header, err
}
