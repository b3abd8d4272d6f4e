package blocktests

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/archive"
	"ashlar/chain/evm"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb/database"
)

// checkBlocks reads the blocks of a chain back and compares them byte by byte.
func (t *target) checkBlocks(ctx context.Context, chain []*types.Block) error {
	for _, want := range chain {
		number, err := t.archive.FindBlock(ctx, want.Hash())
		if err != nil {
			return err
		}
		header, err := t.archive.Header(ctx, number)
		if err != nil {
			return err
		}
		body, err := t.archive.Body(ctx, number, nil)
		if err != nil {
			return err
		}
		block, err := body.Block(header.Header)
		if err != nil {
			return err
		}
		got, err := rlp.EncodeToBytes(block)
		if err != nil {
			return err
		}
		encoded, err := rlp.EncodeToBytes(want)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, encoded) {
			return fmt.Errorf("block %d is stored as %x, expected %x", number, got, encoded)
		}
	}
	return nil
}

// checkState compares the state at the head with the whole of what it must be.
func (t *target) checkState(ctx context.Context, want types.GenesisAlloc) error {
	head, _ := t.archive.Settled()
	state := t.archive.StateAt(head.Number)
	var errs []error
	hashes := make(map[common.Hash]types.Account)
	for address, account := range want {
		hashes[evm.HashAddress(address)] = account
		if err := checkAccount(ctx, state, evm.HashAddress(address), account); err != nil {
			errs = append(errs, fmt.Errorf("account %s: %w", address, err))
		}
	}
	return errors.Join(append(errs, t.checkNothingElse(ctx, state, hashes))...)
}

// checkAccount compares an account, of which none that the state has to hold is empty.
func checkAccount(ctx context.Context, state evm.State, address common.Hash, want types.Account) error {
	got, err := state.Account(ctx, address)
	if err != nil {
		return err
	}
	if got == nil {
		return errors.New("is not there")
	}
	code, err := state.Code(ctx, common.BytesToHash(got.CodeHash))
	if err != nil {
		return err
	}
	var errs []error
	if got.Nonce != want.Nonce {
		errs = append(errs, fmt.Errorf("nonce %d, expected %d", got.Nonce, want.Nonce))
	}
	if got.Balance.ToBig().Cmp(want.Balance) != 0 {
		errs = append(errs, fmt.Errorf("balance %d, expected %d", got.Balance, want.Balance))
	}
	if !bytes.Equal(code, want.Code) {
		errs = append(errs, fmt.Errorf("code %x, expected %x", code, want.Code))
	}
	for slot, word := range want.Storage {
		got, err := state.Slot(ctx, address, evm.HashSlot(slot))
		if err != nil {
			return err
		}
		if got != word {
			errs = append(errs, fmt.Errorf("slot %x: %x, expected %x", slot, got, word))
		}
	}
	return errors.Join(errs...)
}

// checkNothingElse goes through all accounts and slots that there ever were, and finds
// those that should be gone.
func (t *target) checkNothingElse(ctx context.Context, state evm.State, want map[common.Hash]types.Account) error {
	for _, table := range archive.Tables() {
		for row, err := range t.store.Walk(ctx, table) {
			if err == nil {
				switch table.Name {
				case "accounts":
					err = checkAccountExpected(ctx, state, row, want)
				case "slots":
					err = checkSlotExpected(ctx, state, row, want)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkAccountExpected(ctx context.Context, state evm.State, row kv.Row, want map[common.Hash]types.Account) error {
	address := common.Hash(row.Partition)
	account, err := state.Account(ctx, address)
	if _, expected := want[address]; account != nil && !expected {
		return fmt.Errorf("account with hash %x: nonce %d, balance %d, expected none", address, account.Nonce, account.Balance)
	}
	return err
}

func checkSlotExpected(ctx context.Context, state evm.State, row kv.Row, want map[common.Hash]types.Account) error {
	address, hash := common.Hash(row.Partition[:common.HashLength]), common.Hash(row.Partition[common.HashLength:])
	got, err := state.Slot(ctx, address, hash)
	if err != nil || got == (common.Hash{}) {
		return err
	}
	for slot, word := range want[address].Storage {
		if evm.HashSlot(slot) == hash && word != (common.Hash{}) {
			return nil
		}
	}
	return fmt.Errorf("account with hash %x: slot with hash %x is %x, expected 0", address, hash, got)
}

// checkTries goes through every node of the state trie at the head and of the
// storage tries below it, and compares the leaves with the flat values.
func (t *target) checkTries(ctx context.Context) error {
	head, _ := t.archive.Settled()
	header, err := t.archive.Header(ctx, head.Number)
	if err != nil {
		return err
	}
	state := t.archive.StateAt(head.Number)
	return walkTrie(ctx, state, trie.StateTrieID(header.Root), func(address common.Hash, leaf []byte) error {
		account := new(types.StateAccount)
		if err := rlp.DecodeBytes(leaf, account); err != nil {
			return err
		}
		flat, err := state.Account(ctx, address)
		if err != nil {
			return err
		}
		encoded, err := rlp.EncodeToBytes(flat)
		if err != nil {
			return err
		}
		if !bytes.Equal(encoded, leaf) {
			return fmt.Errorf("account with hash %x: %x, its leaf is %x", address, encoded, leaf)
		}
		return walkTrie(ctx, state, trie.StorageTrieID(header.Root, address, account.Root), func(slot common.Hash, leaf []byte) error {
			_, word, _, err := rlp.Split(leaf)
			if err != nil {
				return err
			}
			got, err := state.Slot(ctx, address, slot)
			if err == nil && got != common.BytesToHash(word) {
				err = fmt.Errorf("account with hash %x: slot with hash %x is %x, its leaf has %x", address, slot, got, word)
			}
			return err
		})
	})
}

// walkTrie calls found with every leaf of a trie.
func walkTrie(ctx context.Context, state evm.State, id *trie.ID, found func(key common.Hash, value []byte) error) error {
	tr, err := trie.New(id, nodes{ctx, state})
	if err != nil {
		return err
	}
	iterator, err := tr.NodeIterator(nil)
	if err != nil {
		return err
	}
	leaves := trie.NewIterator(iterator)
	for leaves.Next() {
		if err := found(common.BytesToHash(leaves.Key), leaves.Value); err != nil {
			return err
		}
	}
	return leaves.Err
}

// nodes shows the trie nodes of a state to go-ethereum's tries.
type nodes struct {
	ctx   context.Context
	state evm.State
}

func (n nodes) NodeReader(common.Hash) (database.NodeReader, error) { return n, nil }

func (n nodes) Node(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	return n.state.Node(n.ctx, owner, path, hash)
}
