package blocktests

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/evm"
	"ashlar/evm/archive"
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
	for address, account := range want {
		if err := checkAccount(ctx, state, evm.HashAddress(address), account); err != nil {
			errs = append(errs, fmt.Errorf("account %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
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

// leaves are what the tries of a state hold.
type leaves struct {
	accounts map[common.Hash]bool
	slots    map[[2]common.Hash]bool // by hash of address and slot
}

// checkTries goes through every node of the state trie at a block and of the
// storage tries below it, and compares their leaves with the flat values, both ways.
func (t *target) checkTries(ctx context.Context, number uint64) error {
	header, err := t.archive.Header(ctx, number)
	if err != nil {
		return err
	}
	state := t.archive.StateAt(number)
	found := leaves{make(map[common.Hash]bool), make(map[[2]common.Hash]bool)}
	err = walkTrie(ctx, state, trie.StateTrieID(header.Root), func(address common.Hash, leaf []byte) error {
		found.accounts[address] = true
		account, err := checkAccountLeaf(ctx, state, address, leaf)
		if err != nil {
			return err
		}
		return walkTrie(ctx, state, trie.StorageTrieID(header.Root, address, account.Root), func(slot common.Hash, leaf []byte) error {
			found.slots[[2]common.Hash{address, slot}] = true
			return checkSlotLeaf(ctx, state, address, slot, leaf)
		})
	})
	if err != nil {
		return err
	}
	return t.checkNothingElse(ctx, state, found)
}

func checkAccountLeaf(ctx context.Context, state evm.State, address common.Hash, leaf []byte) (*types.StateAccount, error) {
	account, err := state.Account(ctx, address)
	if err != nil {
		return nil, err
	}
	if account == nil {
		return nil, fmt.Errorf("account with hash %x: there is none, its leaf is %x", address, leaf)
	}
	encoded, err := rlp.EncodeToBytes(account)
	if err == nil && !bytes.Equal(encoded, leaf) {
		err = fmt.Errorf("account with hash %x: %x, its leaf is %x", address, encoded, leaf)
	}
	return account, err
}

func checkSlotLeaf(ctx context.Context, state evm.State, address, slot common.Hash, leaf []byte) error {
	_, word, _, err := rlp.Split(leaf)
	if err != nil {
		return err
	}
	got, err := state.Slot(ctx, address, slot)
	if err == nil && got != common.BytesToHash(word) {
		err = fmt.Errorf("account with hash %x: slot with hash %x is %x, its leaf has %x", address, slot, got, word)
	}
	return err
}

// checkNothingElse goes through all accounts and slots that there ever were, and finds
// those that the state still has and its tries have not.
func (t *target) checkNothingElse(ctx context.Context, state evm.State, found leaves) error {
	for _, table := range archive.Tables() {
		for row, err := range t.store.Walk(ctx, table, 0) {
			if err == nil {
				switch table.Name {
				case "accounts":
					err = checkAccountFound(ctx, state, row, found)
				case "slots":
					err = checkSlotFound(ctx, state, row, found)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkAccountFound(ctx context.Context, state evm.State, row kv.Row, found leaves) error {
	address := common.Hash(row.Partition)
	account, err := state.Account(ctx, address)
	if account != nil && !found.accounts[address] {
		return fmt.Errorf("account with hash %x: nonce %d, balance %d, expected none", address, account.Nonce, account.Balance)
	}
	return err
}

func checkSlotFound(ctx context.Context, state evm.State, row kv.Row, found leaves) error {
	address, slot := common.Hash(row.Partition[:common.HashLength]), common.Hash(row.Partition[common.HashLength:])
	word, err := state.Slot(ctx, address, slot)
	if word != (common.Hash{}) && !found.slots[[2]common.Hash{address, slot}] {
		return fmt.Errorf("account with hash %x: slot with hash %x is %x, expected 0", address, slot, word)
	}
	return err
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
