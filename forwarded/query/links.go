package query

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"ashlar/forwarded"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// mostLinks is how many hashes of followed blocks are kept until the blocks are final.
const mostLinks = 1 << 16

// links are the hashes of blocks that were followed, each the parent of the next, up to the
// head: they outlast the view. Those of final blocks are in the archive.
type links struct {
	mu     sync.Mutex
	hashes map[uint64]common.Hash // guarded by mu
	first  uint64                 // guarded by mu: no hash is below it
	view   *forwarded.View        // guarded by mu: whose blocks were added last; may be nil
}

// move adds the blocks of a view to those of the one before.
func (l *links) move(to *forwarded.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, connected := l.view, false
	l.view = to
	if from != nil {
		_, _, connected = forwarded.Changes(from, to)
	}
	if !connected {
		l.hashes, l.first = make(map[uint64]common.Hash), to.Blocks()[0].Number
	}
	l.first = min(l.first, to.Blocks()[0].Number)
	for _, b := range to.Blocks() {
		l.hashes[b.Number] = b.Hash
	}
	if connected {
		for number := to.Head().Number + 1; number <= from.Head().Number; number++ {
			delete(l.hashes, number)
		}
	}
	for ; len(l.hashes) > mostLinks; l.first++ {
		delete(l.hashes, l.first)
	}
}

func (l *links) at(number uint64) (common.Hash, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hash, ok := l.hashes[number]
	return hash, ok
}

// settle passes the hashes of final blocks to store, and forgets them.
func (l *links) settle(final uint64, store func(number uint64, hash common.Hash) error) error {
	for l.has(final) {
		l.mu.Lock()
		number := l.first
		hash, ok := l.hashes[number]
		l.mu.Unlock()
		if ok {
			if err := store(number, hash); err != nil {
				return err
			}
		}
		l.mu.Lock()
		delete(l.hashes, number)
		l.first = number + 1
		l.mu.Unlock()
	}
	return nil
}

// has reports whether a final block may have a hash here.
func (l *links) has(final uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.hashes) > 0 && l.first <= final
}

// linkKey is what the hash of a final block is kept under in the archive.
func linkKey(number uint64) string {
	return "followed\x00" + string(binary.BigEndian.AppendUint64(nil, number))
}

// KeepLinks keeps the hashes of blocks that are followed, until ctx is done or they cannot be
// stored. It calls stored when they are. A chain that is not checked needs none.
func (c *Chain) KeepLinks(ctx context.Context, stored func()) error {
	if !c.checked {
		return nil
	}
	for {
		changed := c.follower.Changed()
		if view := c.follower.View(); view != nil {
			c.links.move(view)
			final, _ := view.Finalized()
			if err := c.links.settle(final, func(number uint64, hash common.Hash) error { return c.archive.Put(ctx, linkKey(number), hash[:]) }); err != nil {
				return fmt.Errorf("store the hashes of final blocks: %w", err)
			}
			stored()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Linked returns a block with its hash, if the block was followed. If it was not, only a node
// says that a block with the number is on the chain, and the answer to the call is unverified.
func (c *Chain) Linked(ctx context.Context, block Block) (Block, error) {
	if block.Hash != (common.Hash{}) || block.Named != nil {
		return block, nil
	}
	hash, ok, err := c.followed(ctx, block.Number)
	if err == nil && !ok {
		jsonrpc.Weaken(ctx, jsonrpc.Unverified)
	}
	block.Hash = hash
	return block, err
}

// followed returns the hash of a block that was followed, and false if none with the number was,
// as far as is known.
func (c *Chain) followed(ctx context.Context, number uint64) (hash common.Hash, ok bool, err error) {
	if hash, ok = c.links.at(number); ok {
		return hash, true, nil
	}
	stored, ok, err := c.archive.Get(ctx, linkKey(number))
	return common.BytesToHash(stored), ok, err
}
