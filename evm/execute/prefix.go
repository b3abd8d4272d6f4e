package execute

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	prefixBytes    = 32 << 20 // memory of all cached prefixes
	prefixOverhead = 400      // bytes of a prefix beside its segments, in the cache
	prefixSegments = 8        // more would make reading slow
)

// prefix is what the first transactions of a block changed, in the form of access lists.
// It is for blocks from Cancun to Osaka whose changes are not stored. A later replay of the same block
// takes the state before a transaction from it, and runs only what is not in it:
//
//	trace of transaction 5:   runs 0 to 4, cached       | 0..4 |
//	trace of transaction 3:   runs nothing
//	trace of transaction 9:   runs 5 to 8, cached       | 0..4 | 5..8 |
//
// It is immutable.
type prefix struct {
	length   int      // transactions
	segments [][]byte // as RLP, the oldest first
}

// bytes returns the memory of a prefix in the cache.
func (p *prefix) bytes() int {
	sum := prefixOverhead
	for _, segment := range p.segments {
		sum += cap(segment)
	}
	return sum
}

// prefixCache holds prefixes of recently traced blocks by the hash of the block. It is
// safe for concurrent use.
type prefixCache struct {
	mu     sync.Mutex
	blocks lru.BasicLRU[common.Hash, prefix] // guarded by mu
	bytes  int                               // guarded by mu: of all
}

func newPrefixCache() *prefixCache {
	return &prefixCache{blocks: lru.NewBasicLRU[common.Hash, prefix](prefixBytes / prefixOverhead)}
}

func (c *prefixCache) find(block common.Hash) prefix {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, _ := c.blocks.Get(block)
	return found
}

// put adds a prefix unless the block has a longer one, or it is too large by itself.
func (c *prefixCache) put(block common.Hash, p prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, held := c.blocks.Peek(block)
	if p.length <= before.length || p.bytes() > prefixBytes {
		return
	}
	if held {
		c.blocks.Remove(block)
		c.bytes -= before.bytes()
	}
	c.bytes += p.bytes()
	for c.bytes > prefixBytes {
		_, oldest, _ := c.blocks.RemoveOldest()
		c.bytes -= oldest.bytes()
	}
	c.blocks.Add(block, p)
}

// skipCached goes to the transaction with that index, from what is cached of the block,
// and caches what else it runs.
func (r *Replay) skipCached(index int) error {
	known := r.run.executor.prefixes.find(r.run.hash)
	if known.length >= index {
		return r.jumpInto(known, index)
	}
	switch {
	case len(known.segments) == prefixSegments:
		known = prefix{} // record all of it as one segment
	case known.length > r.next:
		if err := r.jumpInto(known, known.length); err != nil {
			return err
		}
	}
	if r.next != known.length || r.begun && r.next == 0 {
		return r.advance(index) // its start is not recorded
	}
	r.aside.expect(r.next, index)
	changes := newChangeRecorder(r.run.state.StateDB)
	r.run.state.changes = changes
	defer func() { r.run.state.changes = nil }()
	if !r.begun {
		r.begin()
		changes.end(0)
	}
	for ; r.next < index; r.next++ {
		if err := r.advanceOne(); err != nil {
			return err
		}
		changes.end(r.next + 1)
	}
	if r.db.failure() != nil || r.run.ctx.Err() != nil {
		return nil
	}
	segment, err := rlp.EncodeToBytes(changes.list().ToEncodingObj())
	if err != nil {
		return fmt.Errorf("changes of the first %d transactions: %w", index, err)
	}
	r.run.executor.prefixes.put(r.run.hash, prefix{index, append(slices.Clone(known.segments), segment)})
	return nil
}

// jumpInto goes to the transaction with that index, at most the one after a prefix.
func (r *Replay) jumpInto(p prefix, index int) (err error) {
	lists := make([]*encodedList, len(p.segments))
	for i, segment := range p.segments {
		if lists[i], err = splitList(segment); err != nil {
			return err
		}
	}
	return r.jumpOver(index, lists...)
}

// list returns the recorded changes in the form of an access list.
func (c *changeRecorder) list() *bal.ConstructionBlockAccessList {
	list := bal.NewConstructionBlockAccessList()
	for k, values := range c.accounts.changed() {
		code := k.first.CodeHash
		for _, after := range values {
			step, value := uint32(after.Step), after.Value
			list.BalanceChange(step, k.at, &value.Balance)
			list.NonceChange(k.at, step, value.Nonce)
			if value.CodeHash != code {
				list.CodeChange(k.at, step, c.codes[value.CodeHash])
			}
			code = value.CodeHash
		}
	}
	for k, values := range c.slots.changed() {
		for _, after := range values {
			list.StorageWrite(uint32(after.Step), k.at.address, k.at.slot, after.Value)
		}
	}
	return list
}
