package execute

import (
	"fmt"
	"math/big"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	prefixBytes    = 32 << 20 // memory of all cached prefixes
	prefixOverhead = 400      // bytes of a prefix beside its segments, in the cache
	prefixSegments = 8        // more would make reading slow
)

// prefix is what the first transactions of a block changed, in the form of access lists.
// It is for blocks before Amsterdam, which have no list. A later replay of the same block
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
	changes := newChangeRecorder(r.run)
	if !r.begun {
		r.begin()
		changes.record(0)
	}
	for ; r.next < index; r.next++ {
		if err := r.advanceOne(); err != nil {
			return err
		}
		changes.record(uint32(r.next + 1))
	}
	r.run.state = r.run.use(r.run.state.StateDB) // no longer watched
	if r.db.failure() != nil || r.run.ctx.Err() != nil {
		return nil
	}
	segment, err := rlp.EncodeToBytes(changes.list.ToEncodingObj())
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
	return r.jump(index, lists...)
}

// changeRecorder records what the steps of a run change.
type changeRecorder struct {
	state    *state.StateDB
	list     *bal.ConstructionBlockAccessList
	accounts map[common.Address]bool // touched by the step; true: its code as well
	slots    map[warmSlot]struct{}   // touched by the step
}

// newChangeRecorder makes the recorder of a run, which it watches until the run gets
// another state.
func newChangeRecorder(run *blockRun) *changeRecorder {
	c := &changeRecorder{
		state: run.state.StateDB, list: bal.NewConstructionBlockAccessList(),
		accounts: make(map[common.Address]bool), slots: make(map[warmSlot]struct{}),
	}
	touch := func(address common.Address) {
		if _, ok := c.accounts[address]; !ok {
			c.accounts[address] = false
		}
	}
	run.evm.StateDB = &watchedState{colliding: run.state, StateDB: state.NewHookedState(run.state.StateDB, &tracing.Hooks{
		OnBalanceChange: func(address common.Address, _, _ *big.Int, _ tracing.BalanceChangeReason) { touch(address) },
		OnNonceChange:   func(address common.Address, _, _ uint64) { touch(address) },
		OnCodeChange: func(address common.Address, _ common.Hash, _ []byte, _ common.Hash, _ []byte) {
			c.accounts[address] = true
		},
		OnStorageChange: func(address common.Address, slot, _, _ common.Hash) { c.slots[warmSlot{address, slot}] = struct{}{} },
	})}
	return c
}

// record takes over what a step has changed, some of it perhaps to what it was before.
func (c *changeRecorder) record(step uint32) {
	for address, code := range c.accounts {
		c.list.BalanceChange(step, address, c.state.GetBalance(address))
		c.list.NonceChange(address, step, c.state.GetNonce(address))
		if code {
			c.list.CodeChange(address, step, c.state.GetCode(address))
		}
	}
	for slot := range c.slots {
		c.list.StorageWrite(step, slot.address, slot.slot, c.state.GetState(slot.address, slot.slot))
	}
	clear(c.accounts)
	clear(c.slots)
}
