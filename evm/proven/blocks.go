package proven

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/source/node"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
)

// ErrOtherChain means that the head descends from another genesis.
var ErrOtherChain = errors.New("the head is of another chain")

var _ archive.Source = (*Remote)(nil)

// Block implements [archive.Source].
func (r *Remote) Block(ctx context.Context, number uint64) (*evm.Delta, error) {
	hash, err := r.hash(ctx, number)
	if err != nil {
		return nil, err
	}
	return r.blockOf(ctx, hash)
}

// Header returns the header of a settled block. It is cheaper than the whole block for those
// who read many in a row.
func (r *Remote) Header(ctx context.Context, number uint64) (*types.Header, error) {
	spine, err := r.spineOf(ctx, number)
	if err != nil {
		return nil, err
	}
	return spine.header(ctx, number)
}

// blockOf returns the block with a hash, which the caller must not change.
func (r *Remote) blockOf(ctx context.Context, hash common.Hash) (*evm.Delta, error) {
	if delta, ok := r.recent.Get(hash); ok {
		return delta, nil
	}
	block, err := r.fetchBlock(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("block %#x: %w", hash, err)
	}
	delta, err := r.withSenders(block)
	if err == nil {
		r.recent.Add(hash, delta)
	}
	return delta, err
}

// fetchBlock fetches the block with a hash, in its raw form if a node offers it.
func (r *Remote) fetchBlock(ctx context.Context, hash common.Hash) (*types.Block, error) {
	check := func(block *types.Block) error {
		if got := block.Hash(); got != hash {
			return lie(fmt.Sprintf("block %#x", hash), "its hash is %#x", got)
		}
		if err := r.checkHeader(block.Header(), block.NumberU64()); err != nil {
			return err
		}
		return checkBody(block)
	}
	raw := newQuestion(upstream.NoHistory, 0, "debug_getRawBlock", hash)
	block, err := ask(ctx, r, raw, func(answer json.RawMessage) (*types.Block, error) {
		block, err := node.ParseRaw(answer)
		if err == nil {
			err = check(block)
		}
		return block, err
	})
	if err == nil || !asksForObject(err) {
		return block, err
	}
	object := newQuestion(upstream.NoHistory, 0, "eth_getBlockByHash", hash, true)
	return ask(ctx, r, object, func(answer json.RawMessage) (*types.Block, error) {
		block, uncles, err := node.ParseObject(answer)
		if err != nil {
			return nil, err
		}
		if len(uncles) > 0 {
			return nil, fmt.Errorf("block %#x has uncles: %w", hash, errRawOnly)
		}
		return block, check(block)
	})
}

// errRawOnly means that a block must be fetched in its raw form.
var errRawOnly = errors.New("only nodes with debug_getRawBlock have all of it")

// asksForObject reports whether to ask for the object after the raw form, because no node has the method, or
// because those that have it do not have the block: in the raw form some cannot say which, and a node without
// the method may have it.
func asksForObject(err error) bool {
	var refused *upstream.NodeError
	return errors.Is(err, upstream.ErrUnsupported) || errors.As(err, &refused) || errors.Is(err, ErrNotFound)
}

// withSenders recovers the senders of a block's transactions.
func (r *Remote) withSenders(block *types.Block) (*evm.Delta, error) {
	signer := types.MakeSigner(r.chain, block.Number(), block.Time())
	delta := &evm.Delta{Block: block, Senders: make([]common.Address, len(block.Transactions()))}
	for i, tx := range block.Transactions() {
		sender, err := types.Sender(signer, tx)
		if err != nil {
			return nil, fmt.Errorf("block %d, transaction %d: %w", block.NumberU64(), i, err)
		}
		delta.Senders[i] = sender
	}
	return delta, nil
}

// checkBody returns a lie unless a block's body is the one that its header names.
func checkBody(block *types.Block) error {
	what, header := fmt.Sprintf("block %d", block.NumberU64()), block.Header()
	if got := types.DeriveSha(block.Transactions(), trie.NewStackTrie(nil)); got != header.TxHash {
		return lie(what, "its transactions have the root %#x, expected %#x", got, header.TxHash)
	}
	if got := types.CalcUncleHash(block.Uncles()); got != header.UncleHash {
		return lie(what, "its uncles have the hash %#x, expected %#x", got, header.UncleHash)
	}
	if (block.Withdrawals() == nil) != (header.WithdrawalsHash == nil) {
		return lie(what, "it has withdrawals: %t, expected %t", block.Withdrawals() != nil, header.WithdrawalsHash != nil)
	}
	if header.WithdrawalsHash == nil {
		return nil
	}
	if got := types.DeriveSha(block.Withdrawals(), trie.NewStackTrie(nil)); got != *header.WithdrawalsHash {
		return lie(what, "its withdrawals have the root %#x, expected %#x", got, *header.WithdrawalsHash)
	}
	return nil
}

// Receipts implements [archive.Source].
func (r *Remote) Receipts(ctx context.Context, number uint64) (types.Receipts, error) {
	delta, err := r.Block(ctx, number)
	if err != nil {
		return nil, err
	}
	return r.receiptsOf(ctx, delta.Block)
}

// receiptsOf returns the receipts of a block.
func (r *Remote) receiptsOf(ctx context.Context, block *types.Block) (types.Receipts, error) {
	if block.ReceiptHash() == types.EmptyReceiptsHash {
		return types.Receipts{}, nil
	}
	what := fmt.Sprintf("receipts of block %d", block.NumberU64())
	check := func(receipts types.Receipts) error {
		if len(receipts) != len(block.Transactions()) {
			return lie(what, "there are %d, expected %d", len(receipts), len(block.Transactions()))
		}
		switch got := types.DeriveSha(receipts, trie.NewStackTrie(nil)); {
		case got == block.ReceiptHash():
			return nil
		case r.lacksRoot(block, receipts):
			return fmt.Errorf("%s: they have statuses in place of the state roots that they had before Byzantium: %w", what, ErrNotFound)
		default:
			return lie(what, "their root is %#x, expected %#x", got, block.ReceiptHash())
		}
	}
	receipts, err := ask(ctx, r, newQuestion(upstream.Blocks, block.NumberU64(), "debug_getRawReceipts", block.Hash()), func(answer json.RawMessage) (types.Receipts, error) {
		raw, err := decode[[]hexutil.Bytes](what, answer)
		if err == nil && len(raw) == 0 {
			err = ErrNotFound // geth says so of a block that it does not know; this one has receipts
		}
		if err != nil {
			return nil, err
		}
		receipts, err := decodeReceipts(block, raw)
		if err == nil {
			err = check(receipts)
		}
		return receipts, err
	})
	if err == nil || !asksForObject(err) {
		return receipts, err
	}
	return ask(ctx, r, newQuestion(upstream.Blocks, block.NumberU64(), "eth_getBlockReceipts", block.Hash()), func(answer json.RawMessage) (types.Receipts, error) {
		receipts, err := node.ParseReceipts(answer)
		if err != nil {
			return nil, err
		}
		return receipts, check(receipts)
	})
}

// lacksRoot reports whether a receipt from before Byzantium has no state root. reth does not keep these roots, and sends a status
// instead, so its receipts of such blocks cannot be proven.
func (r *Remote) lacksRoot(block *types.Block, receipts types.Receipts) bool {
	return !r.chain.IsByzantium(block.Number()) && slices.ContainsFunc(receipts, func(one *types.Receipt) bool { return len(one.PostState) == 0 })
}

func decodeReceipts(block *types.Block, raw []hexutil.Bytes) (types.Receipts, error) {
	receipts := make(types.Receipts, len(raw))
	for i, encoded := range raw {
		receipts[i] = new(types.Receipt)
		if err := receipts[i].UnmarshalBinary(encoded); err != nil {
			return nil, lie(fmt.Sprintf("receipts of block %d", block.NumberU64()), "receipt %d: %w", i, err)
		}
	}
	return receipts, nil
}

// AccessList implements [archive.Source].
func (r *Remote) AccessList(ctx context.Context, header *types.Header) ([]byte, error) {
	q := newQuestion(upstream.Blocks, header.Number.Uint64(), "debug_getRawBlockAccessList", header.Hash())
	return ask(ctx, r, q, func(answer json.RawMessage) ([]byte, error) {
		what := fmt.Sprintf("access list of block %d", header.Number)
		raw, err := decode[hexutil.Bytes](what, answer)
		if got := crypto.Keccak256Hash(raw); err == nil && got != *header.BlockAccessListHash {
			err = lie(what, "its hash is %#x, expected %#x", got, *header.BlockAccessListHash)
		}
		return raw, err
	})
}

// FindBlock implements [archive.Source]. That there is no such block is not proven.
func (r *Remote) FindBlock(ctx context.Context, hash common.Hash) (uint64, error) {
	delta, err := r.blockOf(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		return 0, fmt.Errorf("%w: block %x: %w", archive.ErrNotFound, hash, err)
	}
	if err != nil {
		return 0, err
	}
	number := delta.Block.NumberU64()
	ours, err := r.hash(ctx, number)
	if err == nil && ours != hash {
		err = fmt.Errorf("%w: block %x is not on the chain", archive.ErrNotFound, hash)
	}
	return number, err
}

// placeTime is the most time for the check that a block has a transaction.
const placeTime = 20 * time.Second

// FindTransaction implements [archive.Source]. That there is no such transaction is not
// proven.
func (r *Remote) FindTransaction(ctx context.Context, hash common.Hash) (archive.Place, error) {
	q := newQuestion(upstream.NoHistory, 0, "eth_getTransactionByHash", hash)
	what := fmt.Sprintf("transaction %#x", hash)
	claim, err := ask(ctx, r, q, func(answer json.RawMessage) (archive.Place, error) {
		got, err := decode[struct {
			Number *hexutil.Uint64 `json:"blockNumber"`
			Index  *hexutil.Uint64 `json:"transactionIndex"`
		}](what, answer)
		if err != nil {
			return archive.Place{}, err
		}
		if got.Number == nil || got.Index == nil {
			return archive.Place{}, fmt.Errorf("%s is not included: %w", what, ErrNotFound)
		}
		place := archive.Place{Number: uint64(*got.Number), Index: int(*got.Index)}
		// The caller may leave while others wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), placeTime)
		defer cancel()
		delta, err := r.Block(ctx, place.Number)
		if errors.Is(err, archive.ErrNotFound) {
			return place, fmt.Errorf("%s is above the settled blocks: %w", what, ErrNotFound)
		}
		if err != nil {
			return place, unchecked(err)
		}
		if txs := delta.Block.Transactions(); place.Index < 0 || place.Index >= len(txs) || txs[place.Index].Hash() != hash {
			return place, lie(what, "it is not transaction %d of block %d", place.Index, place.Number)
		}
		return place, nil
	})
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %w", archive.ErrNotFound, err)
	}
	return claim, err
}
