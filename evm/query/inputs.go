package query

import (
	"sync"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	inputBytes  = 32 << 20 // approximate memory of all blocks that are kept to be replayed
	inputBlocks = 1024     // their number
)

// storedInput is what the replay of a stored block needs. It is immutable.
type storedInput struct {
	block   *types.Block
	body    *archive.Body
	senders []common.Address
}

// bytes is the approximate memory of the block: its row, and the decoded transactions.
func (s *storedInput) bytes() uint64 {
	return 4*s.block.Size() + 500*uint64(len(s.senders)) + 1000
}

// inputCache holds blocks that were replayed, decoded, by their hash. Clients trace one
// transaction of a block after the other. It is safe for concurrent use.
type inputCache struct {
	mu     sync.Mutex
	blocks lru.BasicLRU[common.Hash, *storedInput] // guarded by mu
	bytes  uint64                                  // guarded by mu: of all
}

func newInputCache() *inputCache {
	return &inputCache{blocks: lru.NewBasicLRU[common.Hash, *storedInput](inputBlocks)}
}

func (c *inputCache) find(block common.Hash) (*storedInput, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks.Get(block)
}

// add adds a block unless it is there, or too large by itself.
func (c *inputCache) add(block common.Hash, input *storedInput) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := input.bytes()
	if c.blocks.Contains(block) || size > inputBytes {
		return
	}
	for c.blocks.Len() > 0 && (c.bytes+size > inputBytes || c.blocks.Len() == inputBlocks) {
		_, oldest, _ := c.blocks.RemoveOldest()
		c.bytes -= oldest.bytes()
	}
	c.blocks.Add(block, input)
	c.bytes += size
}
