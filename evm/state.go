package evm

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// ErrMissing means that the stored state lacks something that it refers to: a code whose
// hash an account names, or a trie node whose hash its parent holds.
var ErrMissing = errors.New("missing from the stored state")

// ErrUnnamed means that a state cannot be read by a key, because the address or slot behind
// it is not known; see [Named].
var ErrUnnamed = errors.New("not known by its hash, and upstream nodes prove only what they are asked for by address and slot")

// State reads accounts, slots, code and trie nodes as of one block. Keys are the
// keccak256 of the address and of the slot, as in the state trie; [HashAddress]
// and [HashSlot] make them. An implementation is safe for concurrent use.
type State interface {
	// Account returns the account, or nil if there is none. The caller owns it.
	Account(ctx context.Context, address common.Hash) (*types.StateAccount, error)

	// Slot returns the value of a storage slot, zero if it was never set.
	Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error)

	// Code returns the contract code with that hash, or ErrMissing. The caller
	// must not change it.
	Code(ctx context.Context, hash common.Hash) ([]byte, error)

	// Node returns the encoding of the trie node at a path (a nibble a byte)
	// of the account trie (owner zero) or of an account's storage trie (owner
	// the keccak256 of its address), or ErrMissing. hash is the node's hash as
	// its parent holds it; an implementation returns no node with another.
	Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error)
}

// Distant is a [State] that knows whether its reads take round trips to a store. If they do, a
// caller that needs several things reads them side by side.
type Distant interface {
	Distant() bool
}

// Named is a [State] that must know which address or slot a key stands for before the key
// is read: it asks other nodes, whose methods take no keys. A State that wraps another one
// passes the names on.
type Named interface {
	NameAddress(address common.Address)
	NameSlot(slot common.Hash)
}

// AccountKey returns the key of an account, and names the address to the state.
func AccountKey(state State, address common.Address) common.Hash {
	if named, ok := state.(Named); ok {
		named.NameAddress(address)
	}
	return HashAddress(address)
}

// SlotKey returns the key of a slot, and names the slot to the state.
func SlotKey(state State, slot common.Hash) common.Hash {
	if named, ok := state.(Named); ok {
		named.NameSlot(slot)
	}
	return HashSlot(slot)
}
