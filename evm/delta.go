// Package evm holds the nouns of Ethereum-like chains: the [Delta] that a block
// brings and the [State] that questions are asked of.
package evm

import (
	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Delta is everything that one block brings. Execution makes it, and nothing of it
// is computed again. It is immutable.
type Delta struct {
	Block    *types.Block     // without its access list
	Senders  []common.Address // of each transaction
	Receipts types.Receipts   // with logs; blooms may be left out
	// AccessList is the RLP of the block's access list (EIP-7928), nil before Amsterdam.
	AccessList []byte

	// Accounts holds every account that changed, by keccak256 of its address;
	// nil when the account is gone. Its Root is final.
	Accounts map[common.Hash]*types.StateAccount
	// Slots holds every slot that changed, by keccak256 of address and slot;
	// zero when it was cleared.
	Slots map[common.Hash]map[common.Hash]common.Hash
	// Codes holds contract code that some account names since this block, by hash.
	Codes map[common.Hash][]byte
	// Nodes holds every trie node that changed.
	Nodes []Node
}

// Node is a change of one trie node.
type Node struct {
	Owner common.Hash // zero for the account trie, else keccak256 of the account's address
	Path  string      // nibbles, a byte each
	Hash  common.Hash // of Blob; zero when the node is gone
	Blob  []byte      // RLP; empty when the node is gone
	Prev  []byte      // what was there before; empty when nothing was or it is not known
}

// Ref names the delta's block.
func (d *Delta) Ref() chain.Ref {
	return chain.Ref{Number: d.Block.NumberU64(), Hash: d.Block.Hash()}
}

// HashAddress is the key of an account in the state.
func HashAddress(address common.Address) common.Hash { return crypto.Keccak256Hash(address[:]) }

// HashSlot is the key of a slot in its account's storage.
func HashSlot(slot common.Hash) common.Hash { return crypto.Keccak256Hash(slot[:]) }
