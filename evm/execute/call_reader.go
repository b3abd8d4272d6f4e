package execute

import (
	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// callReader reads the state before a call, as [stateReader] reads that before a block. It
// counts what it reads, because the state keeps it until the call ends. It belongs to one
// goroutine.
type callReader struct {
	accountMeter
	perAccount int // bytes that one takes
	perSlot    int
}

func newCallReader(db *stateDatabase, memory *memoryMeter) *callReader {
	return &callReader{newAccountMeter(db, memory), accountBytes, slotBytes}
}

// newScratchReader is newCallReader for a [scratch.State], which counts its entries.
func newScratchReader(db *stateDatabase, memory *memoryMeter) *callReader {
	meter := accountMeter{codeMeter: codeMeter{stateReader{db: db}, memory}} // a scratch.State reads each account once
	return &callReader{accountMeter: meter, perAccount: readAccountBytes}
}

// Grow implements scratch.Reader.
func (r *callReader) Grow(bytes int) bool { return r.memory.fetch(bytes) }

func (r *callReader) Account(address common.Address) (*types.StateAccount, error) {
	if !r.count(address, r.perAccount) {
		return nil, errCallMemory
	}
	if r.db.named != nil {
		r.db.named.NameAddress(address)
	}
	if err := r.db.failure(); err != nil {
		return nil, err
	}
	account, err := r.db.state.Account(r.db.ctx, evm.HashAddress(address))
	if err != nil {
		r.db.fail(err)
	}
	r.note(address, account)
	return account, err
}

func (r *callReader) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	if !r.memory.fetch(r.perSlot) {
		return common.Hash{}, errCallMemory
	}
	if r.db.named != nil {
		r.db.named.NameSlot(slot)
	}
	if err := r.db.failure(); err != nil {
		return common.Hash{}, err
	}
	value, err := r.db.state.Slot(r.db.ctx, evm.HashAddress(address), evm.HashSlot(slot))
	if err != nil {
		r.db.fail(err)
	}
	return value, err
}

// codeMeter is a stateReader that counts codes, which its state keeps until a call or a simulation ends.
type codeMeter struct {
	stateReader
	memory *memoryMeter
}

// Code counts the code for each account, because it is kept even after the archive's cache has evicted
// it. CodeSize keeps nothing.
func (r *codeMeter) Code(address common.Address, hash common.Hash) []byte {
	code := r.stateReader.Code(address, hash)
	if !r.memory.fetch(len(code)) {
		return nil
	}
	return code
}

// simulationReader counts what a simulation of blocks reads, because its state keeps it until the end.
// The gas of its calls bounds that, but each block makes system calls besides, which may run code of
// the client. A slot is read before it is written, and counts with its places in the maps of changes.
type simulationReader struct{ accountMeter }

func (r *simulationReader) Account(address common.Address) (*types.StateAccount, error) {
	if !r.count(address, accountBytes) {
		return nil, errCallMemory
	}
	account, err := r.stateReader.Account(address)
	r.note(address, account)
	return account, err
}

// accountMeter is a codeMeter that counts accounts.
type accountMeter struct {
	codeMeter
	// absent are the accounts that were read and do not exist. go-ethereum's state keeps nothing of them
	// and reads them again each time, so they count once. nil: each is read once.
	absent map[common.Address]struct{}
}

func newAccountMeter(db *stateDatabase, memory *memoryMeter) accountMeter {
	return accountMeter{codeMeter{stateReader{db: db}, memory}, make(map[common.Address]struct{})}
}

// count counts an account that is about to be read.
func (m *accountMeter) count(address common.Address, bytes int) bool {
	if _, again := m.absent[address]; again {
		return true
	}
	return m.memory.fetch(bytes)
}

// note notes what was read.
func (m *accountMeter) note(address common.Address, account *types.StateAccount) {
	if account == nil && m.absent != nil {
		m.absent[address] = struct{}{}
	}
}

func (r *simulationReader) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	if !r.memory.fetch(slotBytes + writeBytes) {
		return common.Hash{}, errCallMemory
	}
	return r.stateReader.Storage(address, slot)
}
