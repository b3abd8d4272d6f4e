package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/chain"
	"ashlar/starknet"
	"ashlar/starknet/source/wire"

	"github.com/ethereum/go-ethereum/common"
)

// ChainID fetches the ID of the node's chain.
func (n *Node) ChainID(ctx context.Context) (id starknet.Felt, err error) {
	err = n.retry(ctx, func() error {
		id, err = n.chainIDOnce(ctx)
		return err
	})
	return id, err
}

// chainIDOnce is ChainID without retries.
func (n *Node) chainIDOnce(ctx context.Context) (id starknet.Felt, err error) {
	err = n.call(ctx, "starknet_chainId", nothing(), func(in *wire.Reader) (err error) {
		id, err = in.Felt()
		return err
	})
	return id, err
}

// Head fetches the node's head. It returns ErrNotFound if the node has no blocks.
func (n *Node) Head(ctx context.Context) (head chain.Ref, err error) {
	var took time.Duration
	err = n.retry(ctx, func() error {
		began := time.Now()
		err := n.call(ctx, "starknet_blockHashAndNumber", nothing(), func(in *wire.Reader) error {
			return in.Object(refMember(in, &head), "block_hash", "block_number")
		})
		took = time.Since(began)
		return notFound(err, codeNoBlocks)
	})
	if err == nil {
		n.record.head(head, took)
	}
	return head, err
}

// refMember returns a function that reads the members of a block that name it.
func refMember(in *wire.Reader, to *chain.Ref) func(name string) error {
	return func(name string) (err error) {
		switch name {
		case "block_hash":
			var hash starknet.Felt
			hash, err = in.Felt()
			to.Hash = common.Hash(hash)
		case "block_number":
			to.Number, err = in.Uint64()
		default:
			err = in.Skip()
		}
		return err
	}
}

// L1Accepted fetches the number of the latest block, up to one with the number most, that is accepted
// on layer 1. It returns ErrNotFound if the node knows of none, and asks once: nodes of versions before
// 0.9 do not know the tag. The node may have another chain than when Follow began, or than expected, so
// the error is that of fits for the block, if it has one.
func (n *Node) L1Accepted(ctx context.Context, most uint64, fits func(chain.Ref) error) (number uint64, err error) {
	if err := n.checkChain(ctx, n.chainIDOnce); err != nil {
		return 0, err
	}
	var block chain.Ref
	err = n.call(ctx, "starknet_getBlockWithTxHashes", []any{"l1_accepted"}, func(in *wire.Reader) error {
		return in.Object(refMember(in, &block), "block_hash", "block_number")
	})
	if err == nil && block.Number > most {
		block.Number = most
		block.Hash, err = n.hashOnce(ctx, most)
	}
	if err == nil {
		err = fits(block)
	}
	return block.Number, notFound(err, codeBlockNotFound)
}

// Block fetches a block with its receipts and events, and checks it.
func (n *Node) Block(ctx context.Context, number uint64) (block *starknet.Block, err error) {
	err = n.retry(ctx, func() error {
		err := n.call(ctx, "starknet_getBlockWithReceipts", blockID(number), func(in *wire.Reader) (err error) {
			block, err = readBlock(in, number)
			return err
		})
		if err == nil && n.options.Check != nil {
			if err = n.options.Check(block); err != nil {
				err = fmt.Errorf("%w: %w", errCheck, err)
			}
		}
		return about(number, err)
	})
	if err != nil {
		return nil, err
	}
	return block, nil
}

// hash fetches a block's hash.
func (n *Node) hash(ctx context.Context, number uint64) (hash common.Hash, err error) {
	err = n.retry(ctx, func() error {
		hash, err = n.hashOnce(ctx, number)
		return about(number, err)
	})
	return hash, err
}

// hashOnce is hash without retries.
func (n *Node) hashOnce(ctx context.Context, number uint64) (hash common.Hash, err error) {
	err = n.call(ctx, "starknet_getBlockWithTxHashes", blockID(number), func(in *wire.Reader) error {
		r := blockReader{in: in, number: number}
		if err := in.Object(r.member, "block_hash", "block_number"); err != nil {
			return err
		}
		hash = common.Hash(r.block.Hash)
		return nil
	})
	return hash, err
}

// nothing returns the parameters of methods without any: some nodes reject null.
func nothing() []any { return []any{} }

func blockID(number uint64) []any { return []any{map[string]uint64{"block_number": number}} }

// about adds the block number to an error.
func about(number uint64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("block %d: %w", number, notFound(err, codeBlockNotFound))
}

// notFound wraps the node's error code for a missing object in ErrNotFound.
func notFound(err error, code int64) error {
	var failure *CallError
	if errors.As(err, &failure) && failure.Code == code {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// blockReader reads a block, whose members may come in any order.
type blockReader struct {
	in       *wire.Reader
	number   uint64 // requested
	block    starknet.Block
	declared counts
}

// counts are the numbers of a block's parts, which nodes provide since 0.10.
type counts struct{ transactions, events *uint64 }

func readBlock(in *wire.Reader, number uint64) (*starknet.Block, error) {
	r := blockReader{in: in, number: number}
	err := in.Object(func(name string) (err error) {
		if name != "transactions" {
			return r.member(name)
		}
		err = in.Array(func(int) error {
			transaction, err := readTransaction(in)
			r.block.Transactions = append(r.block.Transactions, transaction)
			return err
		})
		return err
	}, "status", "block_hash", "parent_hash", "block_number", "new_root", "timestamp", "sequencer_address", "starknet_version", "transactions")
	if err != nil {
		return nil, err
	}
	for _, count := range []struct {
		name     string
		declared *uint64
		have     int
	}{
		{"transaction_count", r.declared.transactions, len(r.block.Transactions)},
		{"event_count", r.declared.events, r.block.EventCount()},
	} {
		if count.declared != nil && *count.declared != uint64(count.have) {
			return nil, in.FailAt(count.name, fmt.Errorf("found %d, but the block holds %d", *count.declared, count.have))
		}
	}
	return &r.block, nil
}

// member reads a member of a header.
func (r *blockReader) member(name string) (err error) {
	h, in := &r.block.Header, r.in
	switch name {
	case "parent_hash":
		h.Parent, err = in.Felt()
	case "new_root":
		h.NewRoot, err = in.Felt()
	case "transaction_count": // since 0.10
		r.declared.transactions = new(uint64)
		*r.declared.transactions, err = in.Uint64()
	case "event_count": // since 0.10
		r.declared.events = new(uint64)
		*r.declared.events, err = in.Uint64()
	default:
		// Data mode and price of data gas exist since 0.7, the price of L2 gas since 0.8, and
		// commitments since 0.10.
		var known bool
		if known, err = in.Header(name, h); !known {
			err = in.Skip()
		}
	}
	if err == nil && name == "block_number" && h.Number != r.number {
		err = in.Fail(fmt.Errorf("found %d, expected %d, the requested block", h.Number, r.number))
	}
	return err
}
