package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// callReader is the state before a call as [stateReader] is that before a block,
// but metered: go-ethereum keeps what it has read. It belongs to one goroutine,
// and has room for what it hashes, as a call reads little and should cost little.
type callReader struct {
	stateReader
	memory *memoryMeter
	hasher crypto.KeccakState

	address     common.Address // asked for last; what is read of one account is mostly read in a row
	addressHash common.Hash    // zero before the first
	slot        common.Hash
}

func newCallReader(db *stateDatabase, memory *memoryMeter) *callReader {
	return &callReader{stateReader: stateReader{db: db}, memory: memory, hasher: crypto.NewKeccakState()}
}

func (r *callReader) Account(address common.Address) (*types.StateAccount, error) {
	if !r.memory.fetch(accountBytes) {
		return nil, errCallMemory
	}
	account, err := r.db.state.Account(r.db.ctx, r.hash(address))
	if err != nil {
		r.db.fail(err)
	}
	return account, err
}

func (r *callReader) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	if !r.memory.fetch(slotBytes) {
		return common.Hash{}, errCallMemory
	}
	r.slot = slot
	r.keccak(r.slot[:], r.slot[:])
	value, err := r.db.state.Slot(r.db.ctx, r.hash(address), r.slot)
	if err != nil {
		r.db.fail(err)
	}
	return value, err
}

// Code is kept with each account that it is asked for, and by nobody else once the
// archive's cache has let go of it. CodeSize keeps nothing.
func (r *callReader) Code(address common.Address, hash common.Hash) []byte {
	code := r.stateReader.Code(address, hash)
	if !r.memory.fetch(len(code)) {
		return nil
	}
	return code
}

func (r *callReader) hash(address common.Address) common.Hash {
	if address != r.address || r.addressHash == (common.Hash{}) {
		r.address = address
		r.keccak(r.address[:], r.addressHash[:])
	}
	return r.addressHash
}

// keccak puts the hash of data into hash, which may be the same.
func (r *callReader) keccak(data, hash []byte) {
	r.hasher.Reset()
	r.hasher.Write(data)
	r.hasher.Read(hash) // which a hasher never fails to do
}
