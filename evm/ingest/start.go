package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// startBlocks is how many blocks before the first one with state are stored: those whose
// hashes BLOCKHASH returns. Tests change it.
var startBlocks uint64 = 256

// ErrOtherState means that a state is not the one that a header names.
var ErrOtherState = errors.New("the state is damaged or of another block")

// StateSource has the whole state after one block, and the blocks up to it. Nothing that it
// returns is trusted, except for the header of that block.
type StateSource interface {
	// Head returns the header of the block.
	Head() *types.Header
	// Accounts calls found with every account, in the order of the hashes of their addresses.
	Accounts(ctx context.Context, found func(address common.Hash, account *types.StateAccount) error) error
	// Slots calls found with every slot of an account in the order of their hashes, with
	// the RLP of its word, which is valid only during the call. root is the storage root.
	Slots(ctx context.Context, address, root common.Hash, found func(slot common.Hash, value []byte) error) error
	// Code returns the contract code with a hash.
	Code(ctx context.Context, hash common.Hash) ([]byte, error)
	// Block returns a block with its receipts, with blooms, and the RLP of its access list.
	Block(hash common.Hash, number uint64) (*types.Block, types.Receipts, []byte, error)
}

// StartProgress is the progress of [Start]. It is safe for concurrent use.
type StartProgress struct {
	Accounts, Slots atomic.Uint64 // written or, after an interruption, passed
	Through         atomic.Uint64 // first 64 bits of the last account's key: the share that is done
}

// StartConfig says with what an archive starts.
type StartConfig struct {
	Start           *archive.Start // of the new archive
	Executor        *execute.Executor
	Genesis         *core.Genesis
	Source          StateSource
	TotalDifficulty *big.Int // of the chain up to the source's head
	Progress        *StartProgress
}

// Start writes the state of a source into a new archive, and the blocks before it. The
// tries are built anew from accounts and slots and must have the roots that the accounts
// and the header name. Memory does not grow with the state.
func Start(ctx context.Context, c StartConfig) (*archive.Archive, error) {
	run := &starting{StartConfig: c, resume: c.Start.LastDone()}
	if err := run.state(ctx); err != nil {
		if errors.Is(err, ErrOtherState) {
			err = errors.Join(err, c.Start.Fail(ctx))
		}
		return nil, err
	}
	return run.blocks(ctx)
}

// starting writes a state.
type starting struct {
	StartConfig
	resume common.Hash // accounts up to this one were written before
}

// state writes all accounts with their slots, codes and tries.
func (r *starting) state(ctx context.Context) error {
	tries := newTrieBuilder(r.Start, common.Hash{})
	err := r.Source.Accounts(ctx, func(address common.Hash, account *types.StateAccount) error {
		value, err := rlp.EncodeToBytes(account)
		if err != nil {
			return err
		}
		if err := tries.add(address, value); err != nil {
			return fmt.Errorf("%w: account %#x: %w", ErrOtherState, address, err)
		}
		if address.Cmp(r.resume) > 0 {
			if err := r.account(ctx, address, account); err != nil {
				return err
			}
		}
		r.Progress.Accounts.Add(1)
		r.Progress.Through.Store(new(big.Int).SetBytes(address[:8]).Uint64())
		return r.Start.Flush(ctx)
	})
	if err != nil {
		return err
	}
	head := r.Source.Head()
	if got, err := tries.root(); err != nil {
		return err
	} else if got != head.Root {
		return fmt.Errorf("%w: the accounts have the root %#x, the header of block %d names %#x", ErrOtherState, got, head.Number, head.Root)
	}
	return nil
}

// account writes an account with its slots, its trie and its code.
func (r *starting) account(ctx context.Context, address common.Hash, account *types.StateAccount) error {
	if account.Root != types.EmptyRootHash {
		if err := r.storage(ctx, address, account.Root); err != nil {
			return err
		}
	}
	if code := common.BytesToHash(account.CodeHash); code != types.EmptyCodeHash {
		if err := r.code(ctx, code); err != nil {
			return fmt.Errorf("account %#x: %w", address, err)
		}
	}
	r.Start.PutAccount(address, account)
	return r.Start.Done(ctx, address)
}

func (r *starting) storage(ctx context.Context, address, root common.Hash) error {
	tries := newTrieBuilder(r.Start, address)
	err := r.Source.Slots(ctx, address, root, func(slot common.Hash, value []byte) error {
		_, word, rest, err := rlp.Split(value)
		if err != nil || len(rest) > 0 || len(word) == 0 || len(word) > common.HashLength || word[0] == 0 {
			return fmt.Errorf("%w: slot %#x of account %#x has the value %#x (want the RLP of a word)", ErrOtherState, slot, address, value)
		}
		if err := tries.add(slot, value); err != nil {
			return fmt.Errorf("%w: slot %#x of account %#x: %w", ErrOtherState, slot, address, err)
		}
		r.Start.PutSlot(address, slot, word)
		r.Progress.Slots.Add(1)
		return r.Start.Flush(ctx)
	})
	if err != nil {
		return err
	}
	if got, err := tries.root(); err != nil {
		return err
	} else if got != root {
		return fmt.Errorf("%w: the slots of account %#x have the root %#x, the account names %#x", ErrOtherState, address, got, root)
	}
	return nil
}

func (r *starting) code(ctx context.Context, hash common.Hash) error {
	if known, err := r.Start.HasCode(ctx, hash); known || err != nil {
		return err
	}
	code, err := r.Source.Code(ctx, hash)
	if err == nil {
		r.Start.PutCode(hash, code)
	}
	return err
}

// blocks writes the genesis, the blocks before the first one with state, and that one.
func (r *starting) blocks(ctx context.Context) (*archive.Archive, error) {
	first, err := execute.Genesis(ctx, r.Genesis)
	if err != nil {
		return nil, err
	}
	if err := r.Start.PutBlock(first, first.Block.Difficulty()); err != nil {
		return nil, err
	}
	head := r.Source.Head()
	last, err := r.block(head.Hash(), head.Number.Uint64())
	if err != nil {
		return nil, err
	}
	total, block := new(big.Int).Set(r.TotalDifficulty), last.Block
	number := head.Number.Uint64()
	oldest := uint64(0)
	if number > startBlocks+1 {
		oldest = number - startBlocks
	}
	for number > max(oldest, 1) {
		total.Sub(total, block.Difficulty())
		number--
		delta, err := r.block(block.ParentHash(), number)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(r.Start.PutBlock(delta, total), r.Start.Flush(ctx), ctx.Err()); err != nil {
			return nil, err
		}
		block = delta.Block
	}
	if number == 1 && block.ParentHash() != first.Block.Hash() {
		return nil, fmt.Errorf("%w: block 1 has the parent %#x, the genesis is %#x", ErrOtherChain, block.ParentHash(), first.Block.Hash())
	}
	return r.Start.Finish(ctx, oldest, last, r.TotalDifficulty)
}

// block returns a block without its changes to the state. The hash is checked, and all
// else by it.
func (r *starting) block(hash common.Hash, number uint64) (*evm.Delta, error) {
	block, receipts, list, err := r.Source.Block(hash, number)
	if err != nil {
		return nil, err
	}
	if got := block.Hash(); got != hash || block.NumberU64() != number {
		return nil, fmt.Errorf("block %d: the source has block %d (%#x) instead (want %#x)", number, block.NumberU64(), got, hash)
	}
	return r.Executor.Recorded(block, receipts, list)
}

// trieBuilder builds a trie from leaves in ascending order, and writes its nodes.
type trieBuilder struct {
	trie *trie.StackTrie
	err  error // of writing a node
}

func newTrieBuilder(s *archive.Start, owner common.Hash) *trieBuilder {
	b := new(trieBuilder)
	b.trie = trie.NewStackTrie(func(path []byte, _ common.Hash, blob []byte) {
		if err := s.PutNode(owner, path, blob); err != nil && b.err == nil {
			b.err = err
		}
	})
	return b
}

func (b *trieBuilder) add(key common.Hash, value []byte) error {
	return errors.Join(b.trie.Update(key[:], value), b.err)
}

func (b *trieBuilder) root() (common.Hash, error) {
	root := b.trie.Hash()
	return root, b.err
}
