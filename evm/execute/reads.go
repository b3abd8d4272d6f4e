package execute

import (
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	cachedReadBytes = 32 << 20                    // approximate memory of all cached reads
	readBytes       = 200                         // of an account or a slot, with its map
	maxCachedReads  = cachedReadBytes / readBytes // accounts and slots of all states
	maxStateReads   = maxCachedReads / 4          // accounts and slots of one state
	readStates      = 1024                        // states
)

// readCache holds what replays have read of the states before recently traced blocks, by
// the root of the state. Blocks are rarely traced once: clients trace one transaction
// after the other, and many clients trace the newest blocks. It is safe for concurrent
// use.
type readCache struct {
	mu     sync.Mutex
	states lru.BasicLRU[common.Hash, *stateReads] // guarded by mu
	count  int                                    // guarded by mu: of accounts and slots
}

// stateReads are accounts and slots of one state. They are safe for concurrent use, and
// what they return must not be changed.
type stateReads struct {
	counted int // guarded by the mu of the cache: its share of count

	mu       sync.Mutex
	accounts map[common.Address]*types.StateAccount // guarded by mu; nil: there is none
	slots    map[warmSlot]common.Hash               // guarded by mu
}

func newReadCache() *readCache {
	return &readCache{states: lru.NewBasicLRU[common.Hash, *stateReads](readStates)}
}

// of returns what has been read of a state, for a replay that may add to it.
func (c *readCache) of(root common.Hash) *stateReads {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reads, ok := c.states.Get(root); ok {
		return reads
	}
	if c.states.Len() == readStates {
		c.evict()
	}
	reads := &stateReads{accounts: make(map[common.Address]*types.StateAccount), slots: make(map[warmSlot]common.Hash)}
	c.states.Add(root, reads)
	return reads
}

// added counts what a replay has added to the reads of a state, and evicts the states that
// have not been used for the longest time if there is too much.
func (c *readCache) added(root common.Hash, reads *stateReads) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cached, ok := c.states.Peek(root); !ok || cached != reads {
		return // evicted meanwhile
	}
	length := reads.length()
	c.count += length - reads.counted
	reads.counted = length
	for c.count > maxCachedReads {
		c.evict()
	}
}

// evict removes the state that has not been used for the longest time. c.mu is held.
func (c *readCache) evict() {
	_, oldest, _ := c.states.RemoveOldest()
	c.count -= oldest.counted
}

func (r *stateReads) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.accounts) + len(r.slots)
}

func (r *stateReads) account(address common.Address) (*types.StateAccount, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	account, ok := r.accounts[address]
	return account, ok
}

func (r *stateReads) slot(at warmSlot) (common.Hash, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.slots[at]
	return value, ok
}

func (r *stateReads) addAccount(address common.Address, account *types.StateAccount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.accounts)+len(r.slots) < maxStateReads {
		r.accounts[address] = account
	}
}

func (r *stateReads) addSlot(at warmSlot, value common.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.accounts)+len(r.slots) < maxStateReads {
		r.slots[at] = value
	}
}
