package pool

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/params"
)

const (
	maxBytes     = 128 << 10 // of a transaction without blobs
	maxBlobBytes = 1 << 20   // of a transaction with its blobs
)

// check performs the checks that need neither state nor blob proofs, by the rules of the
// block after head. It returns the sender.
func (p *Pool) check(tx *types.Transaction, head *types.Header) (common.Address, error) {
	signer := types.LatestSigner(p.config)
	from, err := types.Sender(signer, tx)
	if err != nil {
		return from, fmt.Errorf("%w: %v", txpool.ErrInvalidSender, err)
	}
	options := &txpool.ValidationOptions{
		Config: p.config, MinTip: new(big.Int), MaxSize: maxBytes,
		Accept: 1<<types.LegacyTxType | 1<<types.AccessListTxType | 1<<types.DynamicFeeTxType | 1<<types.BlobTxType | 1<<types.SetCodeTxType,
	}
	if sidecar := tx.BlobTxSidecar(); sidecar != nil {
		options.MaxSize = maxBlobBytes
		options.MaxBlobCount = min(params.BlobTxMaxBlobs, eip4844.MaxBlobsPerBlock(p.config, head.Time))
		if sidecar, err = unproven(sidecar); err != nil {
			return from, err
		}
		tx = tx.WithBlobTxSidecar(sidecar)
	}
	return from, txpool.ValidateTransaction(tx, head, signer, options)
}

// unproven returns the sidecar in the form in which it will be propagated. Missing cell
// proofs are left empty: go-ethereum's checks accept only that form.
func unproven(sidecar *types.BlobTxSidecar) (*types.BlobTxSidecar, error) {
	n := len(sidecar.Blobs)
	if len(sidecar.Commitments) != n {
		return nil, fmt.Errorf("%w: %d blobs with %d commitments", txpool.ErrSidecarFormatError, n, len(sidecar.Commitments))
	}
	if sidecar.Version != types.BlobSidecarVersion0 {
		return sidecar, nil
	}
	if len(sidecar.Proofs) != n {
		return nil, fmt.Errorf("%w: %d blobs with %d proofs", txpool.ErrSidecarFormatError, n, len(sidecar.Proofs))
	}
	proofs := make([]kzg4844.Proof, n*kzg4844.CellProofsPerBlob)
	return types.NewBlobTxSidecar(types.BlobSidecarVersion1, sidecar.Blobs, sidecar.Commitments, proofs), nil
}

// prove verifies the proofs of a transaction's blobs, if it has any. It returns the
// transaction in the form in which it is propagated: with cell proofs, which prove computes
// if the transaction has the older proofs of whole blobs (EIP-7594). Computing them takes a
// third of a second and all processors per blob, so prove handles one transaction at a time.
func (p *Pool) prove(ctx context.Context, tx *types.Transaction) (*types.Transaction, error) {
	sidecar := tx.BlobTxSidecar()
	if sidecar == nil {
		return tx, nil
	}
	if err := p.proving.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.proving.Release(1)
	if sidecar.Version != types.BlobSidecarVersion0 {
		return tx, verifyCells(ctx, sidecar)
	}
	if err := verifyBlobs(ctx, sidecar); err != nil {
		return nil, err
	}
	sidecar, err := withCells(ctx, sidecar)
	if err != nil {
		return nil, err
	}
	return tx.WithBlobTxSidecar(sidecar), nil
}

// verifyCells verifies cell proofs. It does so blob by blob: verifying all at once would be
// a sixth faster, but could not be cancelled.
func verifyCells(ctx context.Context, sidecar *types.BlobTxSidecar) error {
	for i := range sidecar.Blobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		proofs, err := sidecar.CellProofsAt(i)
		if err != nil {
			return fmt.Errorf("%w: %v", txpool.ErrSidecarFormatError, err)
		}
		if err := kzg4844.VerifyCellProofs(sidecar.Blobs[i:i+1], sidecar.Commitments[i:i+1], proofs); err != nil {
			return fmt.Errorf("%w: blob %d: %v", txpool.ErrKZGVerificationError, i, err)
		}
	}
	return nil
}

// verifyBlobs verifies the proofs of whole blobs.
func verifyBlobs(ctx context.Context, sidecar *types.BlobTxSidecar) error {
	for i := range sidecar.Blobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := kzg4844.VerifyBlobProof(&sidecar.Blobs[i], sidecar.Commitments[i], sidecar.Proofs[i]); err != nil {
			return fmt.Errorf("%w: blob %d: %v", txpool.ErrKZGVerificationError, i, err)
		}
	}
	return nil
}

// withCells returns a sidecar with cell proofs instead of proofs of whole blobs.
func withCells(ctx context.Context, sidecar *types.BlobTxSidecar) (*types.BlobTxSidecar, error) {
	proofs := make([]kzg4844.Proof, 0, len(sidecar.Blobs)*kzg4844.CellProofsPerBlob)
	for i := range sidecar.Blobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cells, err := kzg4844.ComputeCellProofs(&sidecar.Blobs[i])
		if err != nil {
			return nil, fmt.Errorf("%w: blob %d: %v", txpool.ErrSidecarFormatError, i, err)
		}
		proofs = append(proofs, cells...)
	}
	return types.NewBlobTxSidecar(types.BlobSidecarVersion1, sidecar.Blobs, sidecar.Commitments, proofs), nil
}
