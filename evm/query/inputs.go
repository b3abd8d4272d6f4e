package query

import (
	"sync"
	"sync/atomic"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	inputBytes  = 32 << 20 // approximate memory of all blocks that are kept to be replayed
	inputBlocks = 1024     // their number
)

// storedInput is what the replay of a stored block needs. Its transactions are decoded when they are needed, and kept. It
// implements execute.Block.
type storedInput struct {
	header       *archive.Header
	body         *archive.Body
	senders      []common.Address
	transactions []atomic.Pointer[types.Transaction] // nil: not decoded yet
}

func newStoredInput(header *archive.Header, body *archive.Body) *storedInput {
	s := &storedInput{header: header, body: body, senders: make([]common.Address, body.Len()), transactions: make([]atomic.Pointer[types.Transaction], body.Len())}
	for i := range s.senders {
		s.senders[i] = body.Sender(i)
	}
	return s
}

// Header implements execute.Block.
func (s *storedInput) Header() *types.Header { return s.header.Header }

// Hash implements execute.Block.
func (s *storedInput) Hash() common.Hash { return s.header.Hash }

// Len implements execute.Block.
func (s *storedInput) Len() int { return len(s.transactions) }

// Transaction implements execute.Block.
func (s *storedInput) Transaction(index int) (*types.Transaction, error) {
	if tx := s.transactions[index].Load(); tx != nil {
		return tx, nil
	}
	tx, err := s.body.DecodeTransaction(index)
	if err != nil {
		return nil, err
	}
	s.transactions[index].Store(tx)
	return tx, nil
}

// Uncles implements execute.Block.
func (s *storedInput) Uncles() ([]*types.Header, error) { return s.body.Uncles() }

// Whole implements execute.Block.
func (s *storedInput) Whole() (*types.Block, error) { return s.body.Block(s.header.Header) }

// bytes is the approximate memory of the block: its row, and all of its transactions decoded.
func (s *storedInput) bytes() uint64 {
	return 4*s.header.Size + 500*uint64(len(s.senders)) + 1000
}

// inputCache holds blocks that were replayed, by their hash. Clients trace one
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
