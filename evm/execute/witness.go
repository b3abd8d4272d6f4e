package execute

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// Witness is all that a block needs to be executed without a state.
type Witness struct {
	Headers []*types.Header // of the ancestors that are needed, oldest first; the last is the parent
	Codes   [][]byte        // that were read, sorted
	Nodes   [][]byte        // of the account trie and of storage tries, sorted

	// Execution does not need the rest.

	Created [][]byte // codes that the block created, sorted
	Keys    [][]byte // addresses, then slots of any account, that were read or changed; both sorted
}

// AllCodes are the codes that were read and those that were created, sorted.
func (w *Witness) AllCodes() [][]byte {
	all := slices.Concat(w.Codes, w.Created)
	slices.SortFunc(all, bytes.Compare)
	return slices.CompactFunc(all, bytes.Equal)
}

// Witness executes a block that was executed before and returns its witness.
func (e *Executor) Witness(ctx context.Context, parent Parent, block *types.Block) (*Witness, error) {
	if block.NumberU64() == 0 {
		return nil, ErrGenesis
	}
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.calls.Release(1)
	record := &recorder{
		State: parent.State, codes: make(map[string]bool), nodes: make(map[string]bool),
		accounts: make(map[common.Hash]map[common.Hash]bool),
		headers:  map[uint64]*types.Header{parent.Header.Number.Uint64(): parent.Header},
		created:  make(map[string]bool), addresses: make(map[string]bool), slots: make(map[string]bool),
	}
	record.aside, ctx = e.newAsideRun(ctx, parent, Decoded(block), ReplayOptions{})
	defer record.aside.stop()
	record.aside.expectWhole(block)
	parent.State, parent.Ancestors, parent.Ahead = record, recordedAncestors{parent.Ancestors, record}, nil
	executed, err := e.executeAgain(ctx, parent, block)
	if err != nil {
		return nil, err
	}
	if _, err := e.Root(ctx, record, parent.Header.Root, executed); err != nil {
		return nil, err
	}
	executed.Codes(func(_ common.Hash, code []byte) { record.created[string(code)] = true })
	if err := record.proveReads(ctx, parent.Header.Root); err != nil {
		return nil, err
	}
	return record.witness(), nil
}

// recorder is a state that remembers what was read of it. It is for concurrent use, as
// every state.
type recorder struct {
	evm.State

	mu       sync.Mutex
	codes    map[string]bool                      // guarded by mu
	nodes    map[string]bool                      // guarded by mu
	accounts map[common.Hash]map[common.Hash]bool // guarded by mu: with their slots
	headers  map[uint64]*types.Header             // guarded by mu

	aside *asideRun // nil if reads take no round trips

	// A witness runs its block in order, in one goroutine, which is the only one to use these.
	created, addresses, slots map[string]bool
}

// recordAddress implements [keyRecorder].
func (r *recorder) recordAddress(address common.Address) { r.addresses[string(address[:])] = true }

// recordSlot implements [keyRecorder].
func (r *recorder) recordSlot(slot common.Hash) { r.slots[string(slot[:])] = true }

// NameAddress implements [evm.Named].
func (r *recorder) NameAddress(address common.Address) { evm.AccountKey(r.State, address) }

// NameSlot implements [evm.Named].
func (r *recorder) NameSlot(slot common.Hash) { evm.SlotKey(r.State, slot) }

// recordedTrie is a storage trie that records the slots that change. A contract that is
// created again in the block that destroyed it changes slots without reading them.
type recordedTrie struct {
	state.Trie
	keys keyRecorder
}

// UpdateStorage implements state.Trie.
func (t recordedTrie) UpdateStorage(address common.Address, slot, value []byte) error {
	t.keys.recordSlot(common.BytesToHash(slot))
	return t.Trie.UpdateStorage(address, slot, value)
}

// DeleteStorage implements state.Trie.
func (t recordedTrie) DeleteStorage(address common.Address, slot []byte) error {
	t.keys.recordSlot(common.BytesToHash(slot))
	return t.Trie.DeleteStorage(address, slot)
}

// Account implements [evm.State].
func (r *recorder) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	r.mu.Lock()
	r.read(address)
	r.mu.Unlock()
	account, err := r.State.Account(ctx, address)
	r.aside.waited(systemCalls)
	return account, err
}

// read remembers an account and returns the set of its slots. mu is held.
func (r *recorder) read(address common.Hash) map[common.Hash]bool {
	slots := r.accounts[address]
	if slots == nil {
		slots = make(map[common.Hash]bool)
		r.accounts[address] = slots
	}
	return slots
}

// Slot implements [evm.State].
func (r *recorder) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	r.mu.Lock()
	r.read(address)[slot] = true
	r.mu.Unlock()
	value, err := r.State.Slot(ctx, address, slot)
	r.aside.waited(systemCalls)
	return value, err
}

// Code implements [evm.State].
func (r *recorder) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	code, err := r.State.Code(ctx, hash)
	if err == nil && len(code) > 0 {
		r.mu.Lock()
		r.codes[string(code)] = true
		r.mu.Unlock()
	}
	return code, err
}

// Node implements [evm.State].
func (r *recorder) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	node, err := r.State.Node(ctx, owner, path, hash)
	if err == nil {
		r.mu.Lock()
		r.nodes[string(node)] = true
		r.mu.Unlock()
	}
	return node, err
}

// proveReads reads the nodes of the tries that prove what was read of the flat state.
func (r *recorder) proveReads(ctx context.Context, root common.Hash) error {
	var failed readFailure
	nodes := nodeDatabase{ctx: ctx, state: r, failed: &failed}
	accounts, err := trie.New(trie.StateTrieID(root), nodes)
	if err != nil {
		return err
	}
	for address, slots := range r.accounts {
		storage, err := storageRoot(accounts, address)
		if err != nil {
			return err
		}
		if len(slots) == 0 || storage == types.EmptyRootHash {
			continue
		}
		opened, err := trie.New(trie.StorageTrieID(root, address, storage), nodes)
		if err != nil {
			return err
		}
		for slot := range slots {
			if _, err := opened.Get(slot[:]); err != nil {
				return err
			}
		}
	}
	return failed.failure()
}

// witness returns what was recorded.
func (r *recorder) witness() *Witness {
	sorted := func(set map[string]bool) (all [][]byte) {
		for one := range set {
			all = append(all, []byte(one))
		}
		slices.SortFunc(all, bytes.Compare)
		return all
	}
	w := &Witness{Codes: sorted(r.codes), Nodes: sorted(r.nodes), Created: sorted(r.created), Keys: append(sorted(r.addresses), sorted(r.slots)...)}
	for _, number := range slices.Sorted(maps.Keys(r.headers)) {
		w.Headers = append(w.Headers, r.headers[number])
	}
	return w
}

// recordedAncestors remembers the headers that were read.
type recordedAncestors struct {
	Ancestors
	record *recorder
}

// Header implements [Ancestors].
func (a recordedAncestors) Header(ctx context.Context, hash common.Hash, number uint64) (*types.Header, error) {
	header, err := a.Ancestors.Header(ctx, hash, number)
	if header != nil && err == nil {
		a.record.mu.Lock()
		a.record.headers[number] = header
		a.record.mu.Unlock()
	}
	return header, err
}

// readingHeaders returns a function that also reads the header of each block whose hash it returns.
// The hash itself is in the header of the block after it, but reth's stateless execution looks for
// the block's own, and geth's witnesses have it.
func readingHeaders(hashOf vm.GetHashFunc, chain *chainReader) vm.GetHashFunc {
	return func(number uint64) common.Hash {
		hash := hashOf(number)
		if hash != (common.Hash{}) {
			chain.GetHeader(hash, number)
		}
		return hash
	}
}

// storageRoot returns the storage root of an account, the empty root if there is no account.
func storageRoot(tr *trie.Trie, address common.Hash) (common.Hash, error) {
	value, err := tr.Get(address[:])
	if err != nil || value == nil {
		return types.EmptyRootHash, err
	}
	var account types.StateAccount
	if err := rlp.DecodeBytes(value, &account); err != nil {
		return common.Hash{}, fmt.Errorf("account %x in the state trie: %w", address, err)
	}
	return account.Root, nil
}
