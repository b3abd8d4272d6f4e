package execute

import (
	"context"
	"errors"
	"sort"
	"sync/atomic"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/crypto"
	"golang.org/x/sync/errgroup"
)

// listedState is the part of the parent's state that a block accesses according to its
// access list (EIP-7928), with the changes that the list names:
//
//	list:       tx 1: balance of A = 7      tx 3: balance of A = 2
//	parent:     balance of A = 9
//	step 0..1:  9      step 2, 3:  7      after step 3:  2
//
// Step 0 are the system calls before the transactions, step i is transaction i-1, and
// the last step is what follows the transactions. Everything is read at once, before the
// block runs, and does not change afterwards, so that many goroutines can use it.
type listedState struct {
	accounts map[common.Address]*listedAccount
	rest     *stateReader // what the list does not name
}

// listedAccount is an account of an access list.
type listedAccount struct {
	*bal.AccountAccess
	hash   common.Hash         // of the address
	before *types.StateAccount // nil: there is none
	codes  []common.Hash       // the hashes of CodeChanges
	slots  []listedSlot        // StorageChanges, then StorageReads
	index  map[common.Hash]int // of slots
}

// listedSlot is a slot of an access list.
type listedSlot struct{ key, hash, before common.Hash }

// listReaders is the number of goroutines that read the state for a list. They are more
// than processors: where the state is on disk, most of them wait.
const listReaders = 8

// errEmptyAccount means that a block accesses an empty account that exists. Execution may
// delete it (EIP-161), which access lists do not show. Only a genesis has such accounts.
var errEmptyAccount = errors.New("execute: an empty account in the access list")

// readListed reads the state before a block for its access list.
func readListed(ctx context.Context, db *stateDatabase, list bal.BlockAccessList) (*listedState, error) {
	l := &listedState{accounts: make(map[common.Address]*listedAccount, len(list)), rest: &stateReader{db: db}}
	accounts := make([]*listedAccount, len(list))
	for i := range list {
		accounts[i] = &listedAccount{AccountAccess: &list[i]}
		l.accounts[list[i].Address] = accounts[i]
	}
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(listReaders, len(accounts)) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(accounts) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := accounts[i].read(ctx, db.state); err != nil {
					return err
				}
			}
		})
	}
	return l, group.Wait()
}

// read reads the account and its slots, and computes all hashes.
func (a *listedAccount) read(ctx context.Context, from evm.State) (err error) {
	a.hash = evm.HashAddress(a.Address)
	if a.before, err = from.Account(ctx, a.hash); err != nil {
		return err
	}
	if a.before != nil && isEmpty(a.before) {
		return errEmptyAccount
	}
	for i := range a.CodeChanges {
		a.codes = append(a.codes, crypto.Keccak256Hash(a.CodeChanges[i].NewCode))
	}
	count := len(a.StorageChanges) + len(a.StorageReads)
	if count == 0 {
		return nil
	}
	a.slots, a.index = make([]listedSlot, count), make(map[common.Hash]int, count)
	for i := range a.slots {
		slot := &a.slots[i]
		if i < len(a.StorageChanges) {
			slot.key = a.StorageChanges[i].Slot.Bytes32()
		} else {
			slot.key = a.StorageReads[i-len(a.StorageChanges)].Bytes32()
		}
		slot.hash = evm.HashSlot(slot.key)
		a.index[slot.key] = i
		if a.before == nil || a.before.Root == types.EmptyRootHash {
			continue // it has no storage
		}
		if slot.before, err = from.Slot(ctx, a.hash, slot.hash); err != nil {
			return err
		}
	}
	return nil
}

// isEmpty reports whether an account is empty (EIP-161).
func isEmpty(a *types.StateAccount) bool {
	return a.Nonce == 0 && a.Balance.IsZero() && common.BytesToHash(a.CodeHash) == types.EmptyCodeHash
}

// at returns the account before a step; nil if there is none.
func (a *listedAccount) at(step uint32) *types.StateAccount {
	balance := lastBefore(step, len(a.BalanceChanges), func(i int) uint32 { return a.BalanceChanges[i].BlockAccessIndex })
	nonce := lastBefore(step, len(a.NonceChanges), func(i int) uint32 { return a.NonceChanges[i].BlockAccessIndex })
	code := a.codeAt(step)
	if balance < 0 && nonce < 0 && code < 0 {
		return a.before
	}
	account := types.NewEmptyStateAccount()
	if a.before != nil {
		account = a.before.Copy()
	}
	if balance >= 0 {
		account.Balance = a.BalanceChanges[balance].PostBalance.Clone()
	}
	if nonce >= 0 {
		account.Nonce = a.NonceChanges[nonce].PostNonce
	}
	if code >= 0 {
		account.CodeHash = a.codes[code].Bytes()
	}
	if isEmpty(account) {
		return nil // it is gone (EIP-161)
	}
	return account
}

// codeAt is the index of the last change of code before a step, or -1.
func (a *listedAccount) codeAt(step uint32) int {
	return lastBefore(step, len(a.CodeChanges), func(i int) uint32 { return a.CodeChanges[i].BlockAccessIndex })
}

// slotAt returns the value of a slot before a step, by its index.
func (a *listedAccount) slotAt(step uint32, slot int) common.Hash {
	if slot < len(a.StorageChanges) {
		writes := a.StorageChanges[slot].SlotChanges
		if i := lastBefore(step, len(writes), func(i int) uint32 { return writes[i].BlockAccessIndex }); i >= 0 {
			return writes[i].PostValue.Bytes32()
		}
	}
	return a.slots[slot].before
}

// lastBefore returns the index of the last of n changes, in ascending order, that a step
// before the given one made; -1 if there is none.
func lastBefore(step uint32, n int, stepOf func(int) uint32) int {
	return sort.Search(n, func(i int) bool { return stepOf(i) >= step }) - 1
}

// before returns a reader of the state before a step.
func (l *listedState) before(step int) *listedReader { return &listedReader{l, uint32(step)} }

// listedReader is the state before a step of a block. It implements state.Reader.
type listedReader struct {
	listed *listedState
	step   uint32
}

func (r *listedReader) Account(address common.Address) (*types.StateAccount, error) {
	if a := r.listed.accounts[address]; a != nil {
		return a.at(r.step), nil
	}
	return r.listed.rest.Account(address)
}

func (r *listedReader) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	if a := r.listed.accounts[address]; a != nil {
		if i, ok := a.index[slot]; ok {
			return a.slotAt(r.step, i), nil
		}
	}
	return r.listed.rest.Storage(address, slot)
}

// newCode returns the code that an account has got by an earlier step.
func (r *listedReader) newCode(address common.Address) ([]byte, bool) {
	a := r.listed.accounts[address]
	if a == nil {
		return nil, false
	}
	i := a.codeAt(r.step)
	if i < 0 {
		return nil, false
	}
	return a.CodeChanges[i].NewCode, true
}

func (r *listedReader) Has(address common.Address, hash common.Hash) bool {
	return len(r.Code(address, hash)) > 0
}

func (r *listedReader) Code(address common.Address, hash common.Hash) []byte {
	if code, ok := r.newCode(address); ok {
		return code
	}
	return r.listed.rest.Code(address, hash)
}

func (r *listedReader) CodeSize(address common.Address, hash common.Hash) int {
	return len(r.Code(address, hash))
}

// afterAll is a step after all of a block.
const afterAll = 1<<32 - 1

// update returns what the block changes. Storage roots are placeholders, as in flat
// execution.
func (l *listedState) update() *state.StateUpdate {
	u := &state.StateUpdate{
		Accounts: make(map[common.Hash]*types.StateAccount), AccountsOrigin: make(map[common.Address]*types.StateAccount),
		Storages: make(map[common.Hash]map[common.Hash]common.Hash), StoragesOrigin: make(map[common.Address]map[common.Hash]common.Hash),
		StorageKeyType: state.StorageKeyHashed, Codes: make(map[common.Address]*state.ContractCode),
	}
	for address, a := range l.accounts {
		after := a.at(afterAll)
		slots, before := a.changedSlots()
		if len(slots) == 0 && sameButRoot(after, a.before) || a.before == nil && after == nil {
			continue
		}
		u.AccountsOrigin[address] = a.before
		if after == nil {
			u.Accounts[a.hash] = nil
			continue
		}
		if len(slots) > 0 {
			u.Storages[a.hash], u.StoragesOrigin[address] = slots, before
			if after == a.before {
				after = after.Copy()
			}
			if after.Root == types.EmptyRootHash {
				after.Root = someRoot
			}
		}
		u.Accounts[a.hash] = after
		if n := len(a.codes); n > 0 {
			u.Codes[address] = &state.ContractCode{Hash: a.codes[n-1], Blob: a.CodeChanges[n-1].NewCode}
		}
	}
	return u
}

// changedSlots returns the slots whose value is another after the block, by their hash, and their
// values before it.
func (a *listedAccount) changedSlots() (changed, before map[common.Hash]common.Hash) {
	if len(a.StorageChanges) == 0 {
		return nil, nil
	}
	changed = make(map[common.Hash]common.Hash, len(a.StorageChanges))
	before = make(map[common.Hash]common.Hash, len(a.StorageChanges))
	for i := range a.StorageChanges {
		if after := a.slotAt(afterAll, i); after != a.slots[i].before {
			changed[a.slots[i].hash], before[a.slots[i].hash] = after, a.slots[i].before
		}
	}
	return changed, before
}
