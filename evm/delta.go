// Package evm defines the data types of Ethereum-like chains: the [Delta] of a block and
// the [State] that answers are read from.
package evm

import (
	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Delta is everything that one block brings. Execution makes it, and nothing of it
// is computed again. It is immutable.
type Delta struct {
	Block    *types.Block     // without its access list
	Senders  []common.Address // of each transaction
	Receipts types.Receipts   // with logs; blooms may be left out
	// AccessList is the RLP of the block's access list (EIP-7928), nil before Amsterdam.
	AccessList []byte
	// Traces says who takes part in the block's traces; nil if they were not recorded.
	Traces *Traces

	// Accounts holds every account that changed, by keccak256 of its address;
	// nil if the account was deleted. Its Root is final.
	Accounts map[common.Hash]*types.StateAccount
	// Slots holds every slot that changed, by keccak256 of address and slot;
	// zero if it was cleared.
	Slots map[common.Hash]map[common.Hash]common.Hash
	// Codes holds the contract code that accounts name since this block, by hash.
	Codes map[common.Hash][]byte
	// Nodes holds every trie node that changed.
	Nodes []Node
}

// Node is a change of one trie node.
type Node struct {
	Owner common.Hash // zero for the account trie, else keccak256 of the account's address
	Path  string      // nibbles, a byte each
	Hash  common.Hash // of Blob; zero if the node was deleted
	Blob  []byte      // RLP; empty if the node was deleted
	Prev  []byte      // the node before; empty if there was none, or it is unknown
}

// Ref names the delta's block.
func (d *Delta) Ref() chain.Ref {
	return chain.Ref{Number: d.Block.NumberU64(), Hash: d.Block.Hash()}
}
