package ingest

import (
	"context"
	"sync"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// What an import keeps in memory. When it is full, it takes some 550 MiB together with the blocks
// under way. That is a third less than the limit of the process, so the garbage collector seldom runs.
//
// A map of Go has places for a power of two, and is full before all are taken: one of 400,000 has
// 2^19 of them, one of 500,000 twice as many.
const (
	latestAccounts  = 200_000   // in a generation, 200 bytes each
	latestSlots     = 400_000   // in a generation, 140 bytes each
	latestNodeBytes = 16 << 20  // in a generation, beside those that the tries keep:
	keptTrieBytes   = 192 << 20 // see [tries.New]
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
	accounts generations[common.Hash, account] // guarded by flat
	slots    generations[slotKey, common.Hash] // guarded by flat
	codes    map[common.Hash]code              // guarded by flat; only what is not settled

	tries     sync.Mutex
	nodes     generations[nodeKey, node] // guarded by tries; read, or written by blocks that execute on tries
	unsettled unsettledNodes             // guarded by tries; written by other blocks
}

// account is an account without pointers, so that the garbage collector has nothing to follow
// in a map of them.
type account struct {
	exists   bool
	nonce    uint64
	balance  uint256.Int
	root     common.Hash
	codeHash common.Hash
}

// accountOf returns an account, which is nil if there is none.
func accountOf(a *types.StateAccount) account {
	if a == nil {
		return account{}
	}
	return account{true, a.Nonce, *a.Balance, a.Root, common.BytesToHash(a.CodeHash)}
}

// stateAccount returns the account in go-ethereum's form; nil if it does not exist.
func (a *account) stateAccount() *types.StateAccount {
	if !a.exists {
		return nil
	}
	made := &struct {
		types.StateAccount
		balance  uint256.Int
		codeHash common.Hash
	}{balance: a.balance, codeHash: a.codeHash}
	made.StateAccount = types.StateAccount{Nonce: a.nonce, Balance: &made.balance, Root: a.root, CodeHash: made.codeHash[:]}
	return &made.StateAccount
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
		accounts: newGenerations[common.Hash, account](latestAccounts, one[account]),
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
	found, ok := l.accounts.get(address)
	l.flat.Unlock()
	if ok {
		return found.stateAccount(), nil
	}
	read, err := l.settled().Account(ctx, address)
	if err == nil {
		l.flat.Lock()
		l.accounts.remember(address, accountOf(read))
		l.flat.Unlock()
	}
	return read, err
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
	blob, ok := l.unsettled.find(hash)
	if !ok {
		var found node
		found, ok = l.nodes.get(key)
		blob, ok = found.blob, ok && found.hash == hash
	}
	l.tries.Unlock()
	if ok {
		return blob, nil
	}
	blob, err := l.settled().Node(ctx, owner, path, hash)
	if err == nil {
		l.tries.Lock()
		l.nodes.set(key, node{hash, blob}, 0) // in place of an earlier one
		l.tries.Unlock()
	}
	return blob, err
}

// executed applies the accounts, slots and code of a block.
func (l *latest) executed(x *execute.Executed) {
	number := x.Block.NumberU64()
	l.flat.Lock()
	defer l.flat.Unlock()
	for address, changed := range x.Accounts() {
		l.accounts.set(address, accountOf(changed), number) // a copy: its root is filled in while this one is read
	}
	for address, slots := range x.Slots() {
		for slot, value := range slots {
			l.slots.set(slotKey{address, slot}, value, number)
		}
	}
	x.Codes(func(hash common.Hash, blob []byte) { l.codes[hash] = code{blob, number} })
}

// rooted applies the trie nodes of a block. inline says that it executed on tries that do not
// outlast a block: then the next one reads most of these nodes.
func (l *latest) rooted(delta *evm.Delta, inline bool) {
	number := delta.Block.NumberU64()
	l.tries.Lock()
	defer l.tries.Unlock()
	if !inline {
		l.unsettled.add(delta.Nodes, number)
		return
	}
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
	l.unsettled.settle(number)
	l.tries.Unlock()
}
