package ingest

import (
	"bytes"
	"context"
	"sync"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// DefaultMemory is how many bytes an [Importer] keeps of the newest state and its tries, unless it is
// told otherwise.
const DefaultMemory = 320 << 20

// shares are the parts of these bytes.
type shares struct {
	accounts, slots int64
	nodes           int64 // beside those that the tries keep
	tries           int64 // see [tries.New]
}

// sharesOf returns the parts of a number of bytes. With [DefaultMemory], some 500,000 accounts and
// 850,000 slots have room.
func sharesOf(bytes int64) shares {
	part := bytes / 20
	return shares{accounts: 2 * part, slots: 5 * part, nodes: part, tries: bytes - 8*part}
}

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
	accounts generations          // guarded by flat; as rows of the archive, by hash of the address
	slots    generations          // guarded by flat; without leading zeros, by [slotKey]
	codes    map[common.Hash]code // guarded by flat; only what is not settled
	row      []byte               // guarded by flat; for an account that is written

	tries     sync.Mutex
	nodes     generations    // guarded by tries; read, or written by blocks that execute on tries. By [nodeKey]
	node      []byte         // guarded by tries; for a node that is written
	unsettled unsettledNodes // guarded by tries; written by other blocks
}

// slotKey returns the key of a slot in [latest].
func slotKey(address, slot common.Hash) (key [2 * common.HashLength]byte) {
	copy(key[copy(key[:], address[:]):], slot[:])
	return key
}

// nodeKey appends the key of a trie node in [latest] to room. Its value is its hash and its blob.
func nodeKey(room []byte, owner common.Hash, path string) []byte {
	return append(append(room, owner[:]...), path...)
}

// maxNodeKey is the greatest length of a key of a trie node.
const maxNodeKey = common.HashLength + evm.KeyNibbles

type code struct {
	blob  []byte
	block uint64
}

var _ evm.State = (*latest)(nil)

func newLatest(a *archive.Archive, s shares) *latest {
	return &latest{
		archive:  a,
		accounts: newGenerations(s.accounts),
		slots:    newGenerations(s.slots),
		codes:    make(map[common.Hash]code),
		nodes:    newGenerations(s.nodes),
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
	row, ok := l.accounts.get(address[:])
	if ok {
		defer l.flat.Unlock()
		return archive.DecodeAccount(row)
	}
	missed := l.accounts.aged
	l.flat.Unlock()
	read, err := l.settled().Account(ctx, address)
	if err == nil {
		l.flat.Lock()
		l.row = archive.AppendAccount(l.row[:0], read)
		l.accounts.remember(address[:], l.row, missed)
		l.flat.Unlock()
	}
	return read, err
}

// Slot implements [evm.State].
func (l *latest) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	key := slotKey(address, slot)
	l.flat.Lock()
	row, ok := l.slots.get(key[:])
	if ok {
		defer l.flat.Unlock()
		return common.BytesToHash(row), nil
	}
	missed := l.slots.aged
	l.flat.Unlock()
	value, err := l.settled().Slot(ctx, address, slot)
	if err == nil {
		l.flat.Lock()
		l.slots.remember(key[:], common.TrimLeftZeroes(value[:]), missed)
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
	var room [maxNodeKey]byte
	key := nodeKey(room[:0], owner, string(path))
	if blob, ok := l.knownNode(key, hash); ok {
		return blob, nil
	}
	blob, err := l.settled().Node(ctx, owner, path, hash)
	if err == nil {
		l.tries.Lock()
		l.setNode(key, hash, blob, 0) // in place of an earlier one
		l.tries.Unlock()
	}
	return blob, err
}

// knownNode returns a node that is in memory.
func (l *latest) knownNode(key []byte, hash common.Hash) ([]byte, bool) {
	l.tries.Lock()
	defer l.tries.Unlock()
	if blob, ok := l.unsettled.find(hash); ok {
		return blob, true
	}
	value, ok := l.nodes.get(key)
	if !ok || common.Hash(value[:common.HashLength]) != hash {
		return nil, false
	}
	return bytes.Clone(value[common.HashLength:]), true
}

// setNode notes a node. The caller holds l.tries.
func (l *latest) setNode(key []byte, hash common.Hash, blob []byte, block uint64) {
	l.node = append(append(l.node[:0], hash[:]...), blob...)
	l.nodes.set(key, l.node, block)
}

// executed applies the accounts, slots and code of a block.
func (l *latest) executed(x *execute.Executed) {
	number := x.Block.NumberU64()
	l.flat.Lock()
	defer l.flat.Unlock()
	for address, changed := range x.Accounts() {
		l.row = archive.AppendAccount(l.row[:0], changed) // a copy: its root is filled in while this one is read
		l.accounts.set(address[:], l.row, number)
	}
	for address, slots := range x.Slots() {
		for slot, value := range slots {
			key := slotKey(address, slot)
			l.slots.set(key[:], common.TrimLeftZeroes(value[:]), number)
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
	var room [maxNodeKey]byte
	for _, n := range delta.Nodes {
		l.setNode(nodeKey(room[:0], n.Owner, n.Path), n.Hash, n.Blob, number)
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
