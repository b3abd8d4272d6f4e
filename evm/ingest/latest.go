package ingest

import (
	"context"
	"fmt"
	"sync"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	latestAccounts  = 400_000  // accounts and
	latestSlots     = 800_000  // slots in a generation, about 200 bytes each
	latestNodeBytes = 32 << 20 // beside those that an import keeps decoded:
	keptTrieBytes   = 128 << 20
)

// latest is the state after the last executed block. It holds the changes of unsettled
// blocks and a cache of recently read and written values; everything else is read from
// the archive. It implements [evm.State], and is safe for concurrent use.
//
// Accounts, slots and code are ahead of trie nodes: the former are as of the last executed
// block, the latter as of the last block whose root is known. Changes since the settled
// block are never evicted, so a missing value has its archived version as of any block
// that is settled at the time.
type latest struct {
	archive *archive.Archive

	flat     sync.Mutex
	accounts generations[common.Hash, *types.StateAccount] // guarded by flat; nil: no such account
	slots    generations[slotKey, common.Hash]             // guarded by flat
	codes    map[common.Hash]code                          // guarded by flat; only what is not settled

	tries sync.Mutex
	nodes generations[nodeKey, node] // guarded by tries
}

type slotKey struct{ address, slot common.Hash }

type nodeKey struct {
	owner common.Hash
	path  string
}

type node struct {
	hash common.Hash
	blob []byte
}

// weight is the node's share of the cache's memory in bytes, its key and the map included.
func (n node) weight() int { return 200 + len(n.blob) }

type code struct {
	blob  []byte
	block uint64
}

var _ evm.State = (*latest)(nil)

func newLatest(a *archive.Archive) *latest {
	return &latest{
		archive:  a,
		accounts: newGenerations[common.Hash, *types.StateAccount](latestAccounts, one),
		slots:    newGenerations[slotKey, common.Hash](latestSlots, one),
		codes:    make(map[common.Hash]code),
		nodes:    newGenerations[nodeKey, node](latestNodeBytes, node.weight),
	}
}

// settled is the archived state, from which missing values are read.
func (l *latest) settled() archive.State {
	ref, _ := l.archive.Settled()
	return l.archive.StateAt(ref.Number)
}

// Account implements [evm.State].
func (l *latest) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	l.flat.Lock()
	account, ok := l.accounts.get(address)
	l.flat.Unlock()
	if !ok {
		var err error
		if account, err = l.settled().Account(ctx, address); err != nil {
			return nil, err
		}
		l.flat.Lock()
		l.accounts.remember(address, account)
		l.flat.Unlock()
	}
	if account == nil {
		return nil, nil
	}
	return account.Copy(), nil
}

// Slot implements [evm.State].
func (l *latest) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	key := slotKey{address, slot}
	l.flat.Lock()
	value, ok := l.slots.get(key)
	l.flat.Unlock()
	if ok {
		return value, nil
	}
	value, err := l.settled().Slot(ctx, address, slot)
	if err == nil {
		l.flat.Lock()
		l.slots.remember(key, value)
		l.flat.Unlock()
	}
	return value, err
}

// Code implements [evm.State].
func (l *latest) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	l.flat.Lock()
	code, ok := l.codes[hash]
	l.flat.Unlock()
	if ok {
		return code.blob, nil
	}
	return l.settled().Code(ctx, hash)
}

// Node implements [evm.State].
func (l *latest) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	key := nodeKey{owner, string(path)}
	l.tries.Lock()
	found, ok := l.nodes.get(key)
	l.tries.Unlock()
	if ok {
		if found.hash != hash {
			return nil, fmt.Errorf("%w: trie node at path %x of %x: expected hash %x, got %x", evm.ErrMissing, path, owner, hash, found.hash)
		}
		return found.blob, nil
	}
	blob, err := l.settled().Node(ctx, owner, path, hash)
	if err == nil {
		l.tries.Lock()
		l.nodes.remember(key, node{hash, blob})
		l.tries.Unlock()
	}
	return blob, err
}

// executed applies the accounts, slots and code of a block.
func (l *latest) executed(x *execute.Executed) {
	number := x.Block.NumberU64()
	l.flat.Lock()
	defer l.flat.Unlock()
	for address, account := range x.Accounts() {
		if account != nil {
			account = account.Copy() // its root is filled in while this one is read
		}
		l.accounts.set(address, account, number)
	}
	for address, slots := range x.Slots() {
		for slot, value := range slots {
			l.slots.set(slotKey{address, slot}, value, number)
		}
	}
	x.Codes(func(hash common.Hash, blob []byte) { l.codes[hash] = code{blob, number} })
}

// rooted applies the trie nodes of a block.
func (l *latest) rooted(delta *evm.Delta) {
	number := delta.Block.NumberU64()
	l.tries.Lock()
	defer l.tries.Unlock()
	for _, n := range delta.Nodes {
		l.nodes.set(nodeKey{n.Owner, n.Path}, node{n.Hash, n.Blob}, number)
	}
}

// settle records that blocks up to number are in the archive.
func (l *latest) settle(number uint64) {
	l.flat.Lock()
	l.accounts.settle(number)
	l.slots.settle(number)
	for hash, code := range l.codes {
		if code.block <= number {
			delete(l.codes, hash)
		}
	}
	l.flat.Unlock()
	l.tries.Lock()
	l.nodes.settle(number)
	l.tries.Unlock()
}
