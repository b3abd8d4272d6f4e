package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

const (
	cachedNodeBytes = 32 << 20 // of all cached trie nodes, entries included
	nodeEntryBytes  = 200      // approximate memory of an entry without its node
)

// nodeCache holds trie nodes by their hash, so nothing in it is ever out of date. It is
// safe for concurrent use.
//
// It serves executions that compute state roots for a client. Nearly all of them need the
// upper nodes of the tries, and a stored node is assembled from up to eight rows. The
// execution of new blocks does not fill it: most of its nodes are replaced at once.
type nodeCache = lru.SizeConstrainedCache[common.Hash, []byte]

func newNodeCache() *nodeCache {
	return lru.NewSizeConstrainedCacheWithKeySize[common.Hash, []byte](cachedNodeBytes, func(common.Hash) uint64 { return nodeEntryBytes })
}
