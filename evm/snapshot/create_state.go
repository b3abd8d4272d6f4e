package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// writeState writes accounts and slots side by side. The tries are built anew, so that no
// snapshot is made of a damaged archive.
func (c *Creator) writeState(ctx context.Context) error {
	accounts, slots := c.writer(Accounts), c.writer(Slots)
	tries := trie.NewStackTrie(nil)
	state, end := execute.ReadAhead(ctx, c.archive.StateAt(c.manifest.State.Number), execute.Contents{Storage: true, Code: true})
	defer end()
	err := execute.EachLeaf(ctx, state, execute.TrieID{Root: c.root}, common.Hash{}, func(address common.Hash, value []byte) (bool, error) {
		account := new(types.StateAccount)
		if err := rlp.DecodeBytes(value, account); err != nil {
			return false, fmt.Errorf("%w: account %#x: %w", archive.ErrCorrupt, address, err)
		}
		if err := tries.Update(address[:], value); err != nil {
			return false, fmt.Errorf("%w: account %#x: %w", archive.ErrCorrupt, address, err)
		}
		if err := c.writeAccount(ctx, accounts, state, address, account); err != nil {
			return false, err
		}
		if account.Root != types.EmptyRootHash {
			if err := c.writeSlots(ctx, slots, state, address, account.Root); err != nil {
				return false, err
			}
		}
		c.accounts.Add(1)
		c.through.Store(binary.BigEndian.Uint64(address[:8]))
		return true, nil
	})
	if err != nil {
		return err
	}
	if got := tries.Hash(); got != c.root {
		return fmt.Errorf("%w: the accounts of block %d have the root %#x, the header names %#x", archive.ErrCorrupt, c.manifest.State.Number, got, c.root)
	}
	return errors.Join(c.finish(accounts), c.finish(slots))
}

func (c *Creator) writeAccount(ctx context.Context, w *chunkWriter, state evm.State, address common.Hash, account *types.StateAccount) error {
	var code []byte
	if hash := common.BytesToHash(account.CodeHash); hash != types.EmptyCodeHash {
		known := c.codes.Contains(hash)
		if c.codes.Add(hash, struct{}{}); !known {
			var err error
			if code, err = state.Code(ctx, hash); err != nil {
				return fmt.Errorf("account %#x: code: %w", address, err)
			}
		}
	}
	first, err := w.begins()
	if err != nil {
		return err
	}
	if first {
		w.first.Account = &address
	}
	w.raw = append(w.raw, address[:]...)
	w.raw = appendField(w.raw, types.SlimAccountRLP(*account))
	w.raw = appendField(w.raw, code)
	return nil
}

func (c *Creator) writeSlots(ctx context.Context, w *chunkWriter, state evm.State, address, root common.Hash) error {
	tries, begun := trie.NewStackTrie(nil), false
	err := execute.EachLeaf(ctx, state, execute.TrieID{Owner: address, Root: root}, common.Hash{}, func(slot common.Hash, value []byte) (bool, error) {
		_, word, rest, err := rlp.Split(value)
		if err == nil && (len(rest) > 0 || len(word) == 0 || len(word) > common.HashLength) {
			err = fmt.Errorf("the value %#x", value)
		}
		if err == nil {
			err = tries.Update(slot[:], value)
		}
		if err != nil {
			return false, fmt.Errorf("%w: slot %#x of account %#x: %w", archive.ErrCorrupt, slot, address, err)
		}
		first, err := w.begins()
		if err != nil {
			return false, err
		}
		if first {
			w.first.Account = &address
		}
		if first || !begun {
			w.raw = append(append(w.raw, 0), address[:]...)
		}
		begun = true
		w.raw = append(append(w.raw, byte(len(word))), slot[:]...)
		w.raw = append(w.raw, word...)
		c.slots.Add(1)
		return true, nil
	})
	if err != nil {
		return err
	}
	if got := tries.Hash(); got != root {
		return fmt.Errorf("%w: the slots of account %#x have the root %#x, the account names %#x", archive.ErrCorrupt, address, got, root)
	}
	return nil
}
