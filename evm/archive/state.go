package archive

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ashlar/evm"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// State is the state as of a block. It implements [evm.State]. Creating one is free.
type State struct {
	history *History
	number  uint64
	nodes   *nodeCache // nil: trie nodes are not cached
}

var (
	_ evm.State   = State{}
	_ evm.Distant = State{}
)

// StateAt returns the state after a block, which must exist. If it is older than the first
// state, reading it returns a [*Pruned].
func (h *History) StateAt(number uint64) State { return State{history: h, number: number} }

// Distant implements [evm.Distant]. It is safe to read the state from several goroutines.
func (s State) Distant() bool { return s.history.distant }

// CachingNodes returns the same state, which keeps trie nodes that are read. It is for
// clients' questions, nearly all of which need the upper nodes of the tries. Importing blocks
// replaces most of the nodes that it reads.
func (s State) CachingNodes() State {
	s.nodes = s.history.nodes
	return s
}

// newest appends the newest value of a row at or below the state's block, or returns false
// if there is none.
func (s State) newest(ctx context.Context, table *kv.Table, partition, dst []byte) ([]byte, bool, error) {
	value, _, found, err := s.written(ctx, table, partition, dst)
	return value, found, err
}

// written is newest, and also returns the block that wrote the value.
func (s State) written(ctx context.Context, table *kv.Table, partition, dst []byte) (value []byte, block uint64, found bool, err error) {
	value, block, err = s.history.rows.Newest(ctx, table, partition, s.number, dst)
	if pruned := s.history.CheckState(s.number); pruned != nil { // rows may have been removed meanwhile
		return dst, 0, false, pruned
	}
	if errors.Is(err, kv.ErrNotFound) {
		return dst, 0, false, nil
	}
	return value, block, err == nil, err
}

// stateRoom is scratch memory for a row of the flat state and for the key of any row of the
// state. Keys and rows on the stack would escape through the store's interface, and a call
// reads hundreds.
type stateRoom struct {
	key   [1 + common.HashLength + 2*common.HashLength]byte // of a trie node: kind of trie, owner, path
	value [128]byte
}

var stateRooms = sync.Pool{New: func() any { return new(stateRoom) }}

// Account implements [evm.State].
func (s State) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	room := stateRooms.Get().(*stateRoom)
	defer stateRooms.Put(room)
	key := append(room.key[:0], address[:]...)
	row, found, err := s.newest(ctx, accounts, key, room.value[:0])
	if !found || err != nil {
		return nil, err
	}
	return DecodeAccount(row)
}

// Slot implements [evm.State].
func (s State) Slot(ctx context.Context, address, slot common.Hash) (value common.Hash, err error) {
	room := stateRooms.Get().(*stateRoom)
	defer stateRooms.Put(room)
	key := appendSlotKey(room.key[:0], address, slot)
	row, _, err := s.newest(ctx, slots, key, room.value[:0])
	if err != nil {
		return value, err
	}
	if len(row) > common.HashLength {
		return value, fmt.Errorf("%w: slots row: a value of %d bytes", ErrCorrupt, len(row))
	}
	value.SetBytes(row)
	return value, nil
}

// Code implements [evm.State].
func (s State) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	if hash == types.EmptyCodeHash {
		return nil, nil
	}
	code, err := s.history.code(ctx, hash)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: code %x", evm.ErrMissing, hash)
	}
	return code, err
}

// Node implements [evm.State]. The node's hash is checked. The caller must not change the
// node.
func (s State) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	if s.nodes == nil {
		return s.readNode(ctx, owner, path, hash)
	}
	if blob, ok := s.nodes.Get(hash); ok {
		return blob, s.history.CheckTries(s.number)
	}
	blob, err := s.readNode(ctx, owner, path, hash)
	if err == nil {
		s.nodes.Add(hash, blob)
	}
	return blob, err
}

// readNode reads a trie node from the store, and checks its hash.
func (s State) readNode(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	blob, err := s.nodeAt(ctx, owner, path, hash)
	if err != nil {
		return nil, err
	}
	if got := crypto.Keccak256Hash(blob); got != hash {
		return nil, fmt.Errorf("%w: trie node at path %x of %x, as of block %d: expected hash %x, got %x", ErrCorrupt, path, owner, s.number, hash, got)
	}
	return blob, nil
}

// nodeAt reads the trie node at a path from the store, whatever its hash is.
func (s State) nodeAt(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	room := stateRooms.Get().(*stateRoom)
	defer stateRooms.Put(room)
	key := appendNodeKey(room.key[:0], owner, string(path))
	row, _, err := NewestNode(ctx, s.history.rows, key, s.number, nil)
	if pruned := s.history.CheckTries(s.number); pruned != nil { // rows may have been removed meanwhile
		return nil, pruned
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	if len(row) == 0 {
		return nil, fmt.Errorf("%w: trie node %x at path %x of %x, as of block %d", evm.ErrMissing, hash, path, owner, s.number)
	}
	if row[0] == nodeLeaf {
		return s.leaf(ctx, owner, path, row[1:])
	}
	return row[1:], nil
}

// leaf assembles a leaf from the rest of its key and the flat value.
func (s State) leaf(ctx context.Context, owner common.Hash, path, rest []byte) ([]byte, error) {
	key, ok := fullKey(path, rest)
	if !ok {
		return nil, fmt.Errorf("%w: trie_nodes row at path %x: its key does not have 32 bytes", ErrCorrupt, path)
	}
	room := stateRooms.Get().(*stateRoom)
	defer stateRooms.Put(room)
	table, partition := accounts, append(room.key[:0], key[:]...)
	if owner != (common.Hash{}) {
		table, partition = slots, appendSlotKey(room.key[:0], owner, key)
	}
	row, _, err := s.newest(ctx, table, partition, room.value[:0])
	if err != nil {
		return nil, err
	}
	if len(row) == 0 {
		return nil, fmt.Errorf("%w: trie_nodes has a leaf with the key %x in the trie of %x, but %s has no row for it as of block %d", ErrCorrupt, key, owner, table.Name, s.number)
	}
	return EncodeLeaf(owner, rest, row)
}
