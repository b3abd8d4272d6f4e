// Package tries changes the account trie and the storage tries of a chain, block by block.
//
// go-ethereum's tries forget their nodes with each commit, so the next block reads and decodes
// the same upper nodes again: a sixth of an import, and more as tries grow. Here, nodes stay in
// memory, decoded, until memory is needed for others:
//
//	block 7:  read a, b, c; change c   commit: a' b' c'
//	block 8:  a' b' are here; read d   commit: a" b" d'
//
// Then those that were not used for the longest time are kept encoded for a while.
//
// Hashes are computed once for all changes of a block.
package tries

import (
	"fmt"
	"math"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// Reader reads the RLP of a node, which must have the given hash and may not be changed later.
type Reader func(owner common.Hash, path []byte, hash common.Hash) ([]byte, error)

// Before returns the value of a key in the state that is to be changed, as the trie of an owner
// has it; nil if it is not known, or if there is none. A wrong value does no harm: leaves are
// compared by their hash. It is called only where the leaf is not in memory.
type Before func(owner, key common.Hash) []byte

// Tries are the tries of one state. They belong to one goroutine. After an error only Begin may
// be called. Between two commits come StorageRoot, SetSlots, and then Commit.
type Tries struct {
	read     Reader
	before   Before      // may be nil
	root     common.Hash // of the state, as of the last commit
	accounts *trie
	storage  map[common.Hash]*trie // by owner
	changed  []*trie               // of storage, whose slots were set since the last commit
	nodes    []evm.Node            // changed since the last commit
	failed   bool
	unlisted bool // nodes that change are not listed

	limit  int    // of bytes
	bytes  int    // of decoded nodes in memory, estimated
	round  uint32 // counts the calls of Begin
	oldest uint32 // a round before which no branch or extension in memory was used last

	evicted       *encodings // of branches and extensions; nil if none are kept
	evictedLeaves *encodings // nil if none are kept

	arena *arena // of nodes; nil: each has memory of its own

	keccak  crypto.KeccakState
	hashed  common.Hash          // scratch of hashOf: one on the stack would escape
	path    [evm.KeyNibbles]byte // scratch of commit
	attempt []byte               // scratch of knownLeaf
}

// New returns tries that keep about as many bytes of nodes in memory: a third of them decoded,
// a quarter leaves that are encoded, the others encoded branches and extensions.
func New(limit int) *Tries {
	leaves := limit / 4
	return &Tries{
		limit: limit / 3, evicted: newEncodings(limit - limit/3 - leaves), evictedLeaves: newEncodings(leaves),
		keccak: crypto.NewKeccakState(),
	}
}

// Begin prepares to change the state with a root. What is in memory stays if it is that
// state's. The nodes of the state are read with read until the next call, but for the leaves
// whose values before, which may be nil, returns: most leaves that a block changes are of accounts
// and slots that it has read, and a leaf takes the longest to read.
func (t *Tries) Begin(root common.Hash, read Reader, before Before) {
	t.read, t.before = read, before
	if t.accounts == nil || t.failed || root != t.root || len(t.changed) > 0 || t.round == math.MaxUint32 {
		t.root, t.storage, t.changed, t.nodes = root, make(map[common.Hash]*trie), nil, nil
		t.bytes, t.round, t.oldest, t.failed = 0, 0, 0, false
		t.accounts = t.open(common.Hash{}, root)
	}
	if t.bytes > t.limit {
		t.evict()
	}
	t.round++
}

// StorageRoot returns an account's storage root as of the last commit; the empty root if there
// is no such account.
func (t *Tries) StorageRoot(address common.Hash) (common.Hash, error) {
	value, err := t.accounts.get(address)
	if err != nil || value == nil {
		return types.EmptyRootHash, t.note(err)
	}
	var account types.StateAccount
	if err := rlp.DecodeBytes(value, &account); err != nil {
		return common.Hash{}, t.note(fmt.Errorf("account %x in the state trie: %w", address, err))
	}
	return account.Root, nil
}

// SetSlots sets slots of an account, whose storage root as of the last commit is given. It is called
// at most once for an account between two commits.
func (t *Tries) SetSlots(address, root common.Hash, slots map[common.Hash]common.Hash) error {
	storage := t.storage[address]
	if storage == nil || storage.hash != root {
		storage = t.open(address, root)
		t.storage[address] = storage
		t.bytes += trieBytes
	}
	t.changed = append(t.changed, storage)
	return t.note(setAll(storage, slots, func(word common.Hash) ([]byte, error) {
		if word == (common.Hash{}) {
			return nil, nil
		}
		return rlp.EncodeToBytes(common.TrimLeftZeroes(word[:]))
	}))
}

// Commit sets accounts, or removes those that are nil, and gives accounts whose slots were set their
// new storage roots; the others have them. It returns the new state root and the nodes of all tries
// that changed since the last commit.
func (t *Tries) Commit(accounts map[common.Hash]*types.StateAccount) (common.Hash, []evm.Node, error) {
	err := t.commitStorage(accounts)
	if err == nil {
		err = setAll(t.accounts, accounts, func(account *types.StateAccount) ([]byte, error) {
			if account == nil {
				return nil, nil
			}
			return rlp.EncodeToBytes(account)
		})
	}
	if err == nil {
		err = t.commit(t.accounts)
	}
	nodes := t.nodes
	t.root, t.nodes = t.accounts.hash, nil
	return t.root, nodes, t.note(err)
}

// commitStorage commits the storage tries that have changed.
func (t *Tries) commitStorage(accounts map[common.Hash]*types.StateAccount) error {
	if err := t.commit(t.changed...); err != nil {
		return err
	}
	for _, storage := range t.changed {
		if account := accounts[storage.owner]; account != nil {
			account.Root = storage.hash
		}
		if storage.root == nil {
			delete(t.storage, storage.owner)
		}
	}
	clear(t.changed)
	t.changed = t.changed[:0]
	return nil
}

// hashOf returns the hash of an encoded node.
func (t *Tries) hashOf(encoded []byte) (common.Hash, error) {
	t.keccak.Reset()
	t.keccak.Write(encoded)
	_, err := t.keccak.Read(t.hashed[:])
	return t.hashed, err
}

// note records that a change was not completed.
func (t *Tries) note(err error) error {
	t.failed = t.failed || err != nil
	return err
}

// setAll sets the values of keys, and removes keys whose value is encoded as nothing. Removals
// come last: one that goes before an insertion beside it could collapse a node, and read
// another, that the insertion would have kept.
func setAll[V any](t *trie, values map[common.Hash]V, encode func(V) ([]byte, error)) error {
	var gone []common.Hash
	for key, value := range values {
		encoded, err := encode(value)
		if err != nil {
			return err
		}
		if encoded == nil {
			gone = append(gone, key)
			continue
		}
		if err := t.put(key, encoded); err != nil {
			return err
		}
	}
	for _, key := range gone {
		if err := t.remove(key); err != nil {
			return err
		}
	}
	return nil
}
