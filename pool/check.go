package pool

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
)

// errNoHead says that the pool does not know yet what comes next.
var errNoHead = errors.New("the network has no head yet")

const (
	maxBytes     = 128 << 10 // of a transaction without blobs
	maxBlobBytes = 1 << 20   // of a transaction with its blobs
)

// check checks what can be checked of a transaction by itself, for a block after
// head. It returns the transaction as it is passed on: with proofs of its blobs in
// the form that is asked for since Osaka.
func (p *Pool) check(tx *types.Transaction, head *types.Header) (*types.Transaction, common.Address, error) {
	signer := types.LatestSigner(p.config)
	from, err := types.Sender(signer, tx)
	if err != nil {
		return nil, from, fmt.Errorf("%w: %v", txpool.ErrInvalidSender, err)
	}
	options := &txpool.ValidationOptions{
		Config: p.config, MinTip: new(big.Int), MaxSize: maxBytes,
		Accept: 1<<types.LegacyTxType | 1<<types.AccessListTxType | 1<<types.DynamicFeeTxType | 1<<types.BlobTxType | 1<<types.SetCodeTxType,
	}
	if sidecar := tx.BlobTxSidecar(); sidecar != nil {
		options.MaxSize = maxBlobBytes
		options.MaxBlobCount = eip4844.MaxBlobsPerBlock(p.config, head.Time)
		if sidecar, err = checkSidecar(sidecar); err != nil {
			return nil, from, err
		}
		tx = tx.WithBlobTxSidecar(sidecar)
	}
	if err := txpool.ValidateTransaction(tx, head, signer, options); err != nil {
		return nil, from, err
	}
	if tx.BlobTxSidecar() != nil {
		sidecar := tx.BlobTxSidecar()
		if err := kzg4844.VerifyCellProofs(sidecar.Blobs, sidecar.Commitments, sidecar.Proofs); err != nil {
			return nil, from, fmt.Errorf("%w: %v", txpool.ErrKZGVerificationError, err)
		}
	}
	return tx, from, nil
}

// checkSidecar returns the sidecar with proofs of cells, which are made here where
// it has the older proofs of whole blobs (EIP-7594).
func checkSidecar(sidecar *types.BlobTxSidecar) (*types.BlobTxSidecar, error) {
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
	for i := range sidecar.Blobs {
		if err := kzg4844.VerifyBlobProof(&sidecar.Blobs[i], sidecar.Commitments[i], sidecar.Proofs[i]); err != nil {
			return nil, fmt.Errorf("%w: blob %d: %v", txpool.ErrKZGVerificationError, i, err)
		}
	}
	sidecar = sidecar.Copy()
	if err := sidecar.ToV1(); err != nil {
		return nil, fmt.Errorf("%w: %v", txpool.ErrSidecarFormatError, err)
	}
	return sidecar, nil
}
