package execute

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"runtime"
	"sync"
	"sync/atomic"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
)

// The checks of a block, as [CheckError] names them.
const (
	CheckHeader           = "header"
	CheckSize             = "block size"
	CheckUncles           = "uncles"
	CheckUnclesHash       = "uncles hash"
	CheckTransactionsRoot = "transactions root"
	CheckWithdrawalsRoot  = "withdrawals root"
	CheckBlobs            = "blobs"
	CheckSignature        = "signature"
	CheckExecution        = "execution"
	CheckGasUsed          = "gas used"
	CheckBloom            = "logs bloom"
	CheckReceiptsRoot     = "receipts root"
	CheckRequestsHash     = "requests hash"
	CheckAccessList       = "access list"
	CheckStateRoot        = "state root"
)

// CheckError says which check a block has failed. If the check compares two values,
// Expected is the block's and Got is the one that was computed; else Err is the reason.
type CheckError struct {
	Number        uint64
	Hash          common.Hash
	Block         *types.Block
	Check         string
	Expected, Got string
	Err           error
}

func (e *CheckError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("bad block %d (%#x): %s: %v", e.Number, e.Hash, e.Check, e.Err)
	}
	return fmt.Sprintf("bad block %d (%#x): %s: expected %s, got %s", e.Number, e.Hash, e.Check, e.Expected, e.Got)
}

func (e *CheckError) Unwrap() error { return e.Err }

// Reasons why a block cannot be executed although it may be valid.
var (
	// ErrFuture means that the block's time is ahead of this machine's clock.
	ErrFuture = errors.New("its time is ahead of the clock of this machine")
	// ErrUnknownFork means that the block belongs to a fork that this version does not know.
	ErrUnknownFork = errors.New("unknown fork (this version knows the forks up to Amsterdam; a later version is needed)")
)

// unready is the error for a block that can be executed later, or by a later version.
func unready(header *types.Header, why error) error {
	return fmt.Errorf("block %d (%#x): %w", header.Number, header.Hash(), why)
}

func refused(block *types.Block, check string, err error) error {
	return &CheckError{Number: block.NumberU64(), Hash: block.Hash(), Block: block, Check: check, Err: err}
}

func mismatch(block *types.Block, check string, expected, got any) error {
	return &CheckError{Number: block.NumberU64(), Hash: block.Hash(), Block: block, Check: check, Expected: fmt.Sprint(expected), Got: fmt.Sprint(got)}
}

// verifyHeader checks the header by the rules of its time, and its uncles.
func (e *Executor) verifyHeader(ctx context.Context, parent Parent, block *types.Block) error {
	header := block.Header()
	if header.ParentHash != parent.Header.Hash() {
		return mismatch(block, CheckHeader, "parent "+header.ParentHash.Hex(), parent.Header.Hash().Hex())
	}
	if err := e.verifyMerge(parent.TotalDifficulty, header); err != nil {
		return refused(block, CheckHeader, err)
	}
	failed := new(readFailure)
	chain := &chainReader{ctx: ctx, config: e.config, engine: e.engine, parent: parent, failed: failed}
	check, err := CheckHeader, e.engine.VerifyHeader(chain, header)
	if err == nil {
		check, err = CheckUncles, e.engine.VerifyUncles(chain, block)
	}
	if failed := failed.failure(); failed != nil {
		return fmt.Errorf("verify header of block %d: %w", block.NumberU64(), failed)
	}
	if errors.Is(err, consensus.ErrFutureBlock) {
		return unready(header, ErrFuture)
	}
	if err != nil {
		return refused(block, check, err)
	}
	return nil
}

// verifyMerge checks that a block has proof of work up to and with the one that
// brings the chain to its terminal total difficulty, and proof of stake from
// then on (EIP-3675). go-ethereum's engine has no total difficulty to go by: it
// only refuses to go back.
func (e *Executor) verifyMerge(parentDifficulty *big.Int, header *types.Header) error {
	terminal := e.config.TerminalTotalDifficulty
	if terminal == nil || parentDifficulty == nil {
		return nil
	}
	merged, stake := parentDifficulty.Cmp(terminal) >= 0, header.Difficulty.Sign() == 0
	switch {
	case merged && !stake:
		return fmt.Errorf("proof of work after the merge: the parent has reached the terminal total difficulty of %d", terminal)
	case stake && !merged:
		return fmt.Errorf("proof of stake before the merge: the total difficulty is %d, the merge comes at %d", parentDifficulty, terminal)
	}
	return nil
}

// VerifyBody makes the checks that need nothing but the block, so they can run ahead
// of its execution and in any order: that the body and the access list are those that
// the header names, and every signature. The transactions cache their senders.
func (e *Executor) VerifyBody(block *types.Block) error {
	if err := e.verifyContents(block); err != nil {
		return err
	}
	signer := types.MakeSigner(e.config, block.Number(), block.Time())
	for i, tx := range block.Transactions() {
		if _, err := types.Sender(signer, tx); err != nil {
			return refused(block, CheckSignature, fmt.Errorf("transaction %d [%x]: %w", i, tx.Hash(), err))
		}
	}
	return nil
}

// VerifyBodyInParallel is VerifyBody on all processors, for a block that comes by itself.
func (e *Executor) VerifyBodyInParallel(block *types.Block) error {
	signer := types.MakeSigner(e.config, block.Number(), block.Time())
	transactions := block.Transactions()
	var next atomic.Int64
	var recovering sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0)-1, len(transactions)/4) {
		recovering.Go(func() {
			// From the last on, because VerifyBody begins with the first. It finds the
			// senders that are recovered here, and the errors.
			for i := len(transactions) - int(next.Add(1)); i >= 0; i = len(transactions) - int(next.Add(1)) {
				types.Sender(signer, transactions[i])
			}
		})
	}
	err := e.VerifyBody(block)
	next.Store(int64(len(transactions))) // no more are needed
	recovering.Wait()
	return err
}

// verifyContents makes the checks of VerifyBody except for the signatures.
func (e *Executor) verifyContents(block *types.Block) error {
	if e.config.IsOsaka(block.Number(), block.Time()) && block.Size() > params.MaxBlockSize {
		return mismatch(block, CheckSize, fmt.Sprintf("at most %d bytes", params.MaxBlockSize), block.Size())
	}
	if got := types.CalcUncleHash(block.Uncles()); got != block.UncleHash() {
		return mismatch(block, CheckUnclesHash, block.UncleHash(), got)
	}
	if got := types.DeriveSha(block.Transactions(), trie.NewStackTrie(nil)); got != block.TxHash() {
		return mismatch(block, CheckTransactionsRoot, block.TxHash(), got)
	}
	if err := verifyWithdrawals(block); err != nil {
		return err
	}
	if err := verifyBlobs(block); err != nil {
		return err
	}
	return e.verifyAccessList(block)
}

func verifyWithdrawals(block *types.Block) error {
	want := block.Header().WithdrawalsHash
	switch {
	case want == nil && block.Withdrawals() != nil:
		return mismatch(block, CheckWithdrawalsRoot, "no withdrawals", fmt.Sprintf("%d", len(block.Withdrawals())))
	case want == nil:
		return nil
	case block.Withdrawals() == nil:
		return mismatch(block, CheckWithdrawalsRoot, want, "no withdrawals")
	}
	if got := types.DeriveSha(block.Withdrawals(), trie.NewStackTrie(nil)); got != *want {
		return mismatch(block, CheckWithdrawalsRoot, want, got)
	}
	return nil
}

func verifyBlobs(block *types.Block) error {
	var blobs uint64
	for i, tx := range block.Transactions() {
		blobs += uint64(len(tx.BlobHashes()))
		if tx.BlobTxSidecar() != nil {
			return refused(block, CheckBlobs, fmt.Errorf("transaction %d [%x] has a sidecar", i, tx.Hash()))
		}
	}
	var want uint64
	if used := block.BlobGasUsed(); used != nil {
		want = *used
	}
	if got := blobs * params.BlobTxBlobGasPerBlob; got != want {
		return mismatch(block, CheckBlobs, fmt.Sprintf("%d blob gas", want), got)
	}
	return nil
}

// VerifyReceipts compares the receipts of a block, which must have their blooms, with its
// header, for a block that is not executed.
func (e *Executor) VerifyReceipts(block *types.Block, receipts types.Receipts) error {
	header := block.Header()
	if got := types.DeriveSha(receipts, trie.NewStackTrie(nil)); got != header.ReceiptHash {
		return mismatch(block, CheckReceiptsRoot, header.ReceiptHash, got)
	}
	if got := types.MergeBloom(receipts); got != header.Bloom {
		return mismatch(block, CheckBloom, hex.EncodeToString(header.Bloom[:]), hex.EncodeToString(got[:]))
	}
	return nil
}

// Recorded makes the delta of a block from what was recorded about it, without its state.
// Everything is checked against the header. accessList is nil before Amsterdam.
func (e *Executor) Recorded(block *types.Block, receipts types.Receipts, accessList []byte) (*evm.Delta, error) {
	if err := e.VerifyBody(block); err != nil {
		return nil, err
	}
	if err := e.VerifyReceipts(block, receipts); err != nil {
		return nil, err
	}
	switch want := block.Header().BlockAccessListHash; {
	case want == nil:
		accessList = nil
	case crypto.Keccak256Hash(accessList) != *want:
		return nil, mismatch(block, CheckAccessList, want, crypto.Keccak256Hash(accessList))
	}
	delta := &evm.Delta{Block: block, Receipts: receipts, AccessList: accessList}
	signer := types.MakeSigner(e.config, block.Number(), block.Time())
	for _, transaction := range block.Transactions() {
		sender, err := types.Sender(signer, transaction) // cached by VerifyBody
		if err != nil {
			return nil, refused(block, CheckSignature, err)
		}
		delta.Senders = append(delta.Senders, sender)
	}
	return delta, nil
}

// verifyOutcome compares the outcome of a block with its header, except for the state
// root, and returns the encoded access list.
func (e *Executor) verifyOutcome(block *types.Block, ran *outcome) ([]byte, error) {
	header := block.Header()
	if ran.gasUsed != header.GasUsed {
		return nil, mismatch(block, CheckGasUsed, header.GasUsed, ran.gasUsed)
	}
	if got := types.MergeBloom(ran.receipts); got != header.Bloom {
		return nil, mismatch(block, CheckBloom, hex.EncodeToString(header.Bloom[:]), hex.EncodeToString(got[:]))
	}
	if got := types.DeriveSha(ran.receipts, trie.NewStackTrie(nil)); got != header.ReceiptHash {
		return nil, mismatch(block, CheckReceiptsRoot, header.ReceiptHash, got)
	}
	switch {
	case header.RequestsHash == nil && ran.requests != nil:
		return nil, mismatch(block, CheckRequestsHash, "none", types.CalcRequestsHash(ran.requests))
	case header.RequestsHash != nil:
		if got := types.CalcRequestsHash(ran.requests); got != *header.RequestsHash {
			return nil, mismatch(block, CheckRequestsHash, header.RequestsHash, got)
		}
	}
	return verifyAccesses(block, ran.list)
}
