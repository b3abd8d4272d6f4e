package chain

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// Why a block parameter names no block, in geth's words.
var (
	// ErrUnknownBlock means that no block has the number.
	ErrUnknownBlock = errors.New("header not found")
	// ErrNotCanonical means that the block with the hash is not on the chain, although the parameter demands it.
	ErrNotCanonical = errors.New("hash is not currently canonical")
	// ErrNoSafe and ErrNoFinalized mean that no such block is known.
	ErrNoSafe      = errors.New("safe block not found")
	ErrNoFinalized = errors.New("finalized block not found")
)

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
