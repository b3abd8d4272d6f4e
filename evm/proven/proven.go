// Package proven answers from nodes that are not trusted. It takes the head's hash as given
// and proves everything else by hashes that lead down from it:
//
//	head hash -> header -> parent's hash -> ... -> header of an older block
//	             header -> transactions and receipts, by their roots
//	             header -> state root -> trie nodes -> accounts, slots -> codes
//
// So a node can withhold an answer but not alter one. A node whose answer does not hash to
// what was asked for has lied: it is set aside, and another one is asked.
//
// Trie nodes and codes are cached by their own hash, so what was fetched for one block
// serves every other block that has it. Nothing of them is stored.
package proven

import (
	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

const (
	cachedTrieBytes = 64 << 20 // trie nodes
	cachedCodeBytes = 32 << 20 // contract code
	cachedNames     = 1 << 17  // addresses and slots by their hashes
	cachedHolders   = 1 << 14  // accounts by the hash of their code
	recentBlocks    = 64       // decoded
	cachedEntry     = 200      // bytes of a cache entry besides its value
)

// Config configures a remote chain.
type Config struct {
	Nodes Asker
	// Chain has the chain's rules, which say how transactions are signed.
	Chain *params.ChainConfig
	// Genesis is the hash of the chain's first block.
	Genesis common.Hash
	// Archive has blocks that were executed here; nil if there are none.
	Archive *archive.Archive
}

// Remote is a chain whose blocks and state come from nodes. It is safe for concurrent use.
type Remote struct {
	nodes Asker
	chain *params.ChainConfig
	// spine has the ancestors of the head's last final block.
	spine   *spine
	archive *archive.Archive // may be nil
	// below has the ancestors of the first block of archive, so that nothing between it and
	// the head is fetched for them.
	below *spine

	tries *lru.SizeConstrainedCache[common.Hash, []byte] // trie nodes by hash
	codes *lru.SizeConstrainedCache[common.Hash, []byte]
	names *lru.Cache[common.Hash, []byte] // addresses and slots by their keccak256
	// holders are accounts that have a code, by the code's hash: nodes are asked for codes
	// by address.
	holders *lru.Cache[common.Hash, common.Address]

	// addresses and slots are found by the first nibbles of their keys.
	addresses, slots *preimages

	// recent are blocks by hash.
	recent *lru.Cache[common.Hash, *evm.Delta]
}

// New returns a remote chain. It asks nothing before it is used.
func New(config Config) *Remote {
	size := func(common.Hash) uint64 { return cachedEntry }
	r := &Remote{
		nodes:   config.Nodes,
		chain:   config.Chain,
		tries:   lru.NewSizeConstrainedCacheWithKeySize[common.Hash, []byte](cachedTrieBytes, size),
		codes:   lru.NewSizeConstrainedCacheWithKeySize[common.Hash, []byte](cachedCodeBytes, size),
		names:   lru.NewCache[common.Hash, []byte](cachedNames),
		recent:  lru.NewCache[common.Hash, *evm.Delta](recentBlocks),
		holders: lru.NewCache[common.Hash, common.Address](cachedHolders),

		addresses: newPreimages(common.AddressLength),
		slots:     newPreimages(common.HashLength),
	}
	r.spine = newSpine(r, chain.Ref{Hash: config.Genesis})
	r.archive, r.below = config.Archive, newSpine(r, chain.Ref{Hash: config.Genesis})
	return r
}

// isEmptyCode reports whether an account has no code.
func isEmptyCode(account *types.StateAccount) bool {
	return common.BytesToHash(account.CodeHash) == types.EmptyCodeHash
}
