package query

import (
	"context"
	"slices"
	"sync/atomic"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// stateAhead reads the state after a block ahead. It implements [execute.Ahead].
type stateAhead struct {
	history *archive.History
	number  uint64
}

var _ execute.Ahead = stateAhead{}

// CountWaits implements [execute.Ahead].
func (s stateAhead) CountWaits(ctx context.Context, waits *atomic.Int64) context.Context {
	return kv.CountWaits(ctx, waits)
}

// Aside implements [execute.Ahead].
func (s stateAhead) Aside(ctx context.Context) context.Context { return kv.Aside(ctx) }

// Read implements [execute.Ahead].
func (s stateAhead) Read(ctx context.Context, accounts []common.Hash) {
	wants := s.history.Wants()
	for _, account := range accounts {
		wants.Account(s.number, account)
	}
	wants.Read(ctx)
	s.readCodes(ctx, accounts)
}

// readCodes reads the codes of accounts, which have been read.
func (s stateAhead) readCodes(ctx context.Context, accounts []common.Hash) {
	codes := make(map[common.Hash]bool)
	for _, address := range accounts {
		account, err := s.history.StateAt(s.number).Account(ctx, address)
		if err != nil {
			return // it recurs
		}
		if account != nil && common.BytesToHash(account.CodeHash) != types.EmptyCodeHash {
			codes[common.BytesToHash(account.CodeHash)] = true
		}
	}
	wants := s.history.Wants()
	for code := range codes {
		wants.Code(code)
	}
	wants.Read(ctx)
}

// ReadPaths implements [execute.Ahead]. It reads some levels of the tries at once, and the next ones where the last of
// these has a branch. Below a path that skips that one, nodes are read when they are needed.
func (s stateAhead) ReadPaths(ctx context.Context, slots map[common.Hash][]common.Hash) {
	var keys []trieKey
	for account, ofAccount := range slots {
		keys = append(keys, keyIn(common.Hash{}, account))
		for _, slot := range ofAccount {
			keys = append(keys, keyIn(account, slot))
		}
	}
	for i, below := range pathLevels[1:] {
		s.readLevels(ctx, keys, pathLevels[i], below)
		keys = slices.DeleteFunc(keys, func(k trieKey) bool {
			return !s.history.HasBranch(ctx, s.number, k.owner, k.nibbles[:below-1])
		})
	}
}

// pathLevels are the levels before which ReadPaths looks whether there are more. Most storage tries have few, and a statement
// for a level that does not exist costs the store as much as another one.
var pathLevels = []int{0, 3, 4, 5, 6, proofLevels}

// trieKey is a key of the trie of an account's slots, or of that of the accounts.
type trieKey struct {
	owner   common.Hash // zero for the trie of the accounts
	nibbles [evm.KeyNibbles]byte
}

func keyIn(owner, key common.Hash) trieKey {
	k := trieKey{owner: owner}
	evm.AppendNibbles(k.nibbles[:0], key[:])
	return k
}

// readLevels reads the nodes on the paths to keys from one level to below another, those that several paths share once.
func (s stateAhead) readLevels(ctx context.Context, keys []trieKey, from, below int) {
	const atOnce = 1024
	wants, n, seen := s.history.Wants(), 0, make(map[string]bool)
	for i := range keys {
		k := &keys[i]
		for depth := from; depth < below; depth++ {
			path := k.nibbles[:depth]
			at := string(k.owner[:]) + string(path)
			if seen[at] {
				continue
			}
			seen[at] = true
			if n == atOnce {
				wants.Read(ctx)
				wants, n = s.history.Wants(), 0
			}
			wants.Node(s.number, k.owner, path)
			n++
		}
	}
	wants.Read(ctx)
}
