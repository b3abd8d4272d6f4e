package execute

import (
	"context"
	"errors"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/ethereum/go-ethereum/triedb/database"
)

// stateDatabase gives go-ethereum's StateDB the state after one block. If it is flat, its
// tries hold nothing, and [Executor.Root] computes the state root.
//
// Its users check its failure before they use any result.
type stateDatabase struct {
	readFailure
	ctx     context.Context
	state   evm.State
	flat    bool
	named   evm.Named          // the state, if it must be told what is read; may be nil
	keys    keyRecorder        // told what is read or changed; may be nil
	reads   *stateReads        // what has been read of the state before; may be nil
	tries   *simulatedTries    // of a simulation of blocks; nil elsewhere
	wasRead func()             // called after each read of an account, a slot or a code; may be nil
	newRoot common.Hash        // the root that a flat account trie returns
	update  *state.StateUpdate // the argument of Commit
}

// keyRecorder is a state that records the addresses and slots that a block uses, which
// [evm.State] has the hashes of only.
type keyRecorder interface {
	recordAddress(address common.Address)
	recordSlot(slot common.Hash)
}

func newDatabase(ctx context.Context, parent Parent, flat bool) *stateDatabase {
	keys, _ := parent.State.(keyRecorder)
	named, _ := parent.State.(evm.Named)
	return &stateDatabase{ctx: ctx, state: parent.State, flat: flat, named: named, keys: keys}
}

// tellRead calls wasRead.
func (d *stateDatabase) tellRead() {
	if d.wasRead != nil {
		d.wasRead()
	}
}

func (d *stateDatabase) nodes() nodeDatabase {
	return nodeDatabase{ctx: d.ctx, state: d.state, failed: &d.readFailure}
}

// Type implements state.Database. In a simulation it is TypeUBT, although there is no unified trie: then StateDB starts no
// goroutines (see [simulatedTries]). Commit, which would need the real type, is never called there.
func (d *stateDatabase) Type() state.DatabaseType {
	if d.tries != nil && d.tries.joined() {
		return state.TypeUBT
	}
	return state.TypeMPT
}

// TrieDB implements state.Database; StateDB never asks for it.
func (d *stateDatabase) TrieDB() *triedb.Database { return nil }

// Reader implements state.Database.
func (d *stateDatabase) Reader(common.Hash) (state.Reader, error) {
	return &stateReader{db: d}, nil
}

// Commit implements state.Database.
func (d *stateDatabase) Commit(update *state.StateUpdate) error {
	dropUnchanged(update)
	d.update = update
	return nil
}

// OpenTrie implements state.Database.
func (d *stateDatabase) OpenTrie(root common.Hash) (state.Trie, error) {
	if d.flat {
		return &flatTrie{root: d.newRoot}, nil
	}
	if d.tries != nil {
		return d.tries.open(root), nil
	}
	return trie.NewStateTrie(trie.StateTrieID(root), d.nodes())
}

// OpenStorageTrie implements state.Database.
func (d *stateDatabase) OpenStorageTrie(stateRoot common.Hash, address common.Address, root common.Hash, _ state.Trie) (state.Trie, error) {
	if d.flat {
		return &flatTrie{root: root, storage: true}, nil
	}
	if d.tries != nil {
		return d.tries.openStorage(evm.HashAddress(address), root), nil
	}
	storage, err := trie.NewStateTrie(trie.StorageTrieID(stateRoot, evm.HashAddress(address), root), d.nodes())
	if err == nil && d.keys != nil {
		return recordedTrie{storage, d.keys}, nil
	}
	return storage, err
}

// Iteratee implements state.Database.
func (d *stateDatabase) Iteratee(root common.Hash) (state.Iteratee, error) {
	return storageIteratee{d, root}, nil
}

// stateReader implements state.Reader. Many goroutines may use it if its db records nothing of
// what is read.
type stateReader struct {
	db *stateDatabase
}

func (r *stateReader) Account(address common.Address) (*types.StateAccount, error) {
	reads := r.db.reads
	if reads != nil {
		if account, ok := reads.account(address); ok {
			return account, nil
		}
	}
	if r.db.keys != nil {
		r.db.keys.recordAddress(address)
	}
	if r.db.named != nil {
		r.db.named.NameAddress(address)
	}
	if err := r.db.failure(); err != nil {
		return nil, err
	}
	hash := evm.HashAddress(address)
	account, err := r.db.state.Account(r.db.ctx, hash)
	r.db.tellRead()
	switch {
	case err != nil:
		r.db.fail(err)
	case reads != nil:
		reads.addAccount(address, account)
	case r.db.tries != nil:
		r.db.tries.seen.accounts[hash] = account
	}
	return account, err
}

func (r *stateReader) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	reads := r.db.reads
	if reads != nil {
		if value, ok := reads.slot(warmSlot{address, slot}); ok {
			return value, nil
		}
	}
	if r.db.keys != nil {
		r.db.keys.recordSlot(slot)
	}
	if r.db.named != nil {
		r.db.named.NameSlot(slot)
	}
	if err := r.db.failure(); err != nil {
		return common.Hash{}, err
	}
	at := slotPlace{evm.HashAddress(address), evm.HashSlot(slot)}
	value, err := r.db.state.Slot(r.db.ctx, at.address, at.slot)
	r.db.tellRead()
	switch {
	case err != nil:
		r.db.fail(err)
	case reads != nil:
		reads.addSlot(warmSlot{address, slot}, value)
	case r.db.tries != nil:
		r.db.tries.seen.slots[at] = value
	}
	return value, err
}

func (r *stateReader) Has(address common.Address, hash common.Hash) bool {
	return len(r.Code(address, hash)) > 0
}

func (r *stateReader) Code(_ common.Address, hash common.Hash) []byte {
	if r.db.failure() != nil {
		return nil
	}
	code, err := r.db.state.Code(r.db.ctx, hash)
	r.db.tellRead()
	if err != nil {
		r.db.fail(err)
		return nil
	}
	return code
}

func (r *stateReader) CodeSize(address common.Address, hash common.Hash) int {
	return len(r.Code(address, hash))
}

// nodeDatabase gives go-ethereum's tries the trie nodes of an [evm.State].
type nodeDatabase struct {
	ctx    context.Context
	state  evm.State
	failed *readFailure
}

// NodeReader implements database.NodeDatabase.
func (d nodeDatabase) NodeReader(common.Hash) (database.NodeReader, error) { return d, nil }

// Node implements database.NodeReader.
func (d nodeDatabase) Node(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	if err := d.failed.failure(); err != nil {
		return nil, err
	}
	node, err := d.state.Node(d.ctx, owner, path, hash)
	if err != nil {
		d.failed.fail(err)
	}
	return node, err
}

// storageIteratee implements the part of state.Iteratee with which StateDB wipes the
// storage of an account before Cancun.
type storageIteratee struct {
	db   *stateDatabase
	root common.Hash
}

func (s storageIteratee) NewAccountIterator(common.Hash) (state.AccountIterator, error) {
	return nil, errors.ErrUnsupported
}

func (s storageIteratee) NewStorageIterator(address common.Hash, start common.Hash) (state.StorageIterator, error) {
	account, err := s.db.state.Account(s.db.ctx, address)
	if err != nil {
		s.db.fail(err)
		return nil, err
	}
	root := types.EmptyRootHash
	if account != nil {
		root = account.Root
	}
	storage, err := trie.New(trie.StorageTrieID(s.root, address, root), s.db.nodes())
	if err != nil {
		return nil, err
	}
	nodes, err := storage.NodeIterator(start[:])
	if err != nil {
		return nil, err
	}
	return &storageIterator{leaves: trie.NewIterator(nodes)}, nil
}

// storageIterator steps through the leaves of a storage trie, in the order of their hashes.
type storageIterator struct {
	leaves *trie.Iterator
	err    error
}

func (i *storageIterator) Next() bool { return i.err == nil && i.leaves.Next() }

func (i *storageIterator) Error() error {
	if i.err != nil {
		return i.err
	}
	return i.leaves.Err
}

func (i *storageIterator) Hash() common.Hash { return common.BytesToHash(i.leaves.Key) }
func (i *storageIterator) Release()          {}

func (i *storageIterator) Key() (common.Hash, error) {
	return common.Hash{}, errors.New("the slot behind a hash is not stored")
}

func (i *storageIterator) Slot() common.Hash {
	_, value, _, err := rlp.Split(i.leaves.Value)
	if err != nil {
		i.err = fmt.Errorf("storage trie leaf %x: %w", i.leaves.Key, err)
	}
	return common.BytesToHash(value)
}
