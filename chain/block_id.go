package chain

import "github.com/ethereum/go-ethereum/common"

// Tag names a block by its place in the chain.
type Tag uint8

// The tags of a block parameter.
const (
	NoTag Tag = iota
	Latest
	Earliest
	Pending
	Safe
	Finalized
)

// BlockID is the block parameter of Ethereum's JSON-RPC methods. The tag takes precedence,
// then the hash, then the number.
type BlockID struct {
	Tag              Tag
	Number           uint64
	Hash             *common.Hash
	RequireCanonical bool // applies to Hash, see EIP-1898
}
