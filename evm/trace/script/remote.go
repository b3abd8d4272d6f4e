package script

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// remote reads what the server has. It implements evm.State, execute.Ancestors,
// execute.BlockHashes and execute.StoredBlock.
type remote struct {
	server *server
	mu     sync.Mutex // held from a read to its reply
	// names are the addresses and slots behind keys, for states that are read by them.
	names sync.Map // of []byte by common.Hash
}

// NameAddress implements evm.Named.
func (r *remote) NameAddress(address common.Address) {
	r.names.Store(evm.HashAddress(address), address[:])
}

// NameSlot implements evm.Named.
func (r *remote) NameSlot(slot common.Hash) { r.names.Store(evm.HashSlot(slot), slot[:]) }

// name returns the address or slot behind a key, empty if it is not known.
func (r *remote) name(key common.Hash) []byte {
	name, _ := r.names.Load(key)
	known, _ := name.([]byte)
	return known
}

// ask sends a read and returns the reply. An error that the server has ends the worker, so
// there are no replies for it.
func (r *remote) ask(k kind, key ...[]byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.server.send(k, key...); err != nil {
		return nil, err
	}
	return <-r.server.replies, nil
}

// Account implements evm.State.
func (r *remote) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	reply, err := r.ask(readAccount, address[:], r.name(address))
	if len(reply) == 0 || err != nil {
		return nil, err
	}
	account := new(types.StateAccount)
	return account, encoded(reply).into(account)
}

// Slot implements evm.State.
func (r *remote) Slot(_ context.Context, address, slot common.Hash) (common.Hash, error) {
	reply, err := r.ask(readSlot, address[:], slot[:], r.name(slot))
	return common.BytesToHash(reply), err
}

// Code implements evm.State.
func (r *remote) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	return r.ask(readCode, hash[:])
}

// Node implements evm.State.
func (r *remote) Node(_ context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	return r.ask(readNode, owner[:], hash[:], path)
}

// Header implements execute.Ancestors.
func (r *remote) Header(_ context.Context, hash common.Hash, number uint64) (*types.Header, error) {
	reply, err := r.ask(readHeader, hash[:], binary.BigEndian.AppendUint64(nil, number))
	if len(reply) == 0 || err != nil {
		return nil, err
	}
	header := new(types.Header)
	return header, encoded(reply).into(header)
}

// Block implements execute.Ancestors. No transaction needs it.
func (r *remote) Block(context.Context, common.Hash, uint64) (*types.Block, error) {
	return nil, errors.ErrUnsupported
}

// First implements execute.Ancestors. No transaction needs it.
func (r *remote) First() uint64 { return 0 }

// AccessList implements execute.StoredBlock.
func (r *remote) AccessList(context.Context) ([]byte, error) { return r.ask(readAccessList) }

// LogsBefore implements execute.StoredBlock.
func (r *remote) LogsBefore(_ context.Context, index int) (uint64, error) {
	reply, err := r.ask(readLogs, binary.BigEndian.AppendUint64(nil, uint64(index)))
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(reply), nil
}

// BlockHash implements execute.BlockHashes.
func (r *remote) BlockHash(_ context.Context, number uint64) (common.Hash, error) {
	reply, err := r.ask(readBlockHash, binary.BigEndian.AppendUint64(nil, number))
	return common.BytesToHash(reply), err
}
