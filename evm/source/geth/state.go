package geth

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// Accounts calls found with every account of the state, in the order of the hashes of their
// addresses.
func (d *Dir) Accounts(ctx context.Context, found func(address common.Hash, account *types.StateAccount) error) error {
	if !d.flat {
		return d.leaves(ctx, trie.StateTrieID(d.head.Root), func(address common.Hash, value []byte) error {
			account := new(types.StateAccount)
			if err := rlp.DecodeBytes(value, account); err != nil {
				return fmt.Errorf("geth's directory: account %#x: %w", address, err)
			}
			return found(address, account)
		})
	}
	accounts, err := d.tries.AccountIterator(d.head.Root, common.Hash{})
	if err != nil {
		return fmt.Errorf("geth's directory: accounts: %w", err)
	}
	defer accounts.Release()
	for accounts.Next() {
		account, err := types.FullAccount(accounts.Account())
		if err != nil {
			return fmt.Errorf("geth's directory: account %#x: %w", accounts.Hash(), err)
		}
		if err := found(accounts.Hash(), account); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := accounts.Error(); err != nil {
		return fmt.Errorf("geth's directory: accounts: %w", err)
	}
	return nil
}

// Slots calls found with every slot of an account in the order of their hashes, with the RLP
// of its word. root is the account's storage root. The value is valid only during the call.
func (d *Dir) Slots(ctx context.Context, address, root common.Hash, found func(slot common.Hash, value []byte) error) error {
	if !d.flat {
		return d.leaves(ctx, trie.StorageTrieID(d.head.Root, address, root), found)
	}
	slots, err := d.tries.StorageIterator(d.head.Root, address, common.Hash{})
	if err != nil {
		return fmt.Errorf("geth's directory: slots of %#x: %w", address, err)
	}
	defer slots.Release()
	for slots.Next() {
		if err := found(slots.Hash(), slots.Slot()); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := slots.Error(); err != nil {
		return fmt.Errorf("geth's directory: slots of %#x: %w", address, err)
	}
	return nil
}

// leaves calls found with every leaf of a trie, in the order of the keys.
func (d *Dir) leaves(ctx context.Context, id *trie.ID, found func(key common.Hash, value []byte) error) error {
	t, err := trie.New(id, d.tries)
	if err != nil {
		return fmt.Errorf("geth's directory: trie of %#x: %w", id.Owner, err)
	}
	nodes, err := t.NodeIterator(nil)
	if err != nil {
		return fmt.Errorf("geth's directory: trie of %#x: %w", id.Owner, err)
	}
	for nodes.Next(true) {
		if !nodes.Leaf() {
			continue
		}
		if err := found(common.BytesToHash(nodes.LeafKey()), nodes.LeafBlob()); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := nodes.Error(); err != nil {
		return fmt.Errorf("geth's directory: trie of %#x: %w", id.Owner, err)
	}
	return nil
}

// Code returns the contract code with a hash.
func (d *Dir) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	code := rawdb.ReadCode(d.chain, hash)
	if got := crypto.Keccak256Hash(code); got != hash {
		return nil, fmt.Errorf("geth's directory: code %#x: %d bytes with the hash %#x", hash, len(code), got)
	}
	return code, nil
}
