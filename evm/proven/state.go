package proven

import (
	"context"
	"fmt"
	"sync"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// State is the state after a block, read from nodes and proven against the block's state
// root. It implements [evm.State] and [evm.Named]. A state belongs to one request, and is
// safe for concurrent use.
type State struct {
	remote *Remote
	header func(context.Context) (*types.Header, error)

	mu   sync.Mutex
	root *types.Header // once it is known
	// given are trie nodes and codes of a witness, by their own hash. They are not in the
	// caches, because nothing has asked for most of them yet.
	given   map[common.Hash][]byte
	invalid int // witnesses that could not be decoded
}

var (
	_ evm.State = (*State)(nil)
	_ evm.Named = (*State)(nil)
)

// StateAt returns the state after the block with a header, which is called once it is needed.
func (r *Remote) StateAt(header func(context.Context) (*types.Header, error)) *State {
	return &State{remote: r, header: header}
}

// at returns the header of the state's block.
func (s *State) at(ctx context.Context) (*types.Header, error) {
	s.mu.Lock()
	known := s.root
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	header, err := s.header(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root = header
	return header, nil
}

// NameAddress implements [evm.Named].
func (s *State) NameAddress(address common.Address) { s.remote.nameAddress(address) }

// NameSlot implements [evm.Named].
func (s *State) NameSlot(slot common.Hash) { s.remote.nameSlot(slot) }

func (r *Remote) nameAddress(address common.Address) common.Hash {
	key := evm.HashAddress(address)
	if !r.names.Contains(key) {
		r.names.Add(key, address[:])
	}
	return key
}

func (r *Remote) nameSlot(slot common.Hash) common.Hash {
	key := evm.HashSlot(slot)
	if !r.names.Contains(key) {
		r.names.Add(key, slot[:])
	}
	return key
}

// Account implements [evm.State].
func (s *State) Account(ctx context.Context, key common.Hash) (*types.StateAccount, error) {
	header, err := s.at(ctx)
	if err != nil {
		return nil, err
	}
	found, err := account(s.known, header.Root, key)
	if isMissing(err) {
		var want Want
		if want.Address, err = s.remote.address(key); err != nil {
			return nil, err
		}
		if err = s.fetch(ctx, header, []Want{want}); err != nil {
			return nil, err
		}
		found, err = account(s.known, header.Root, key)
	}
	if err != nil || found == nil {
		return nil, err
	}
	if address, err := s.remote.address(key); err == nil && !isEmptyCode(found) {
		s.remote.holders.Add(common.BytesToHash(found.CodeHash), address)
	}
	return found, nil
}

// Slot implements [evm.State].
func (s *State) Slot(ctx context.Context, key, slot common.Hash) (common.Hash, error) {
	of, err := s.Account(ctx, key)
	if err != nil || of == nil {
		return common.Hash{}, err
	}
	value, err := word(s.known, of.Root, slot)
	if !isMissing(err) {
		return value, err
	}
	header, err := s.at(ctx)
	if err != nil {
		return common.Hash{}, err
	}
	want := Want{Slots: make([]common.Hash, 1)}
	if want.Address, err = s.remote.address(key); err != nil {
		return common.Hash{}, err
	}
	if want.Slots[0], err = s.remote.slot(slot); err != nil {
		return common.Hash{}, err
	}
	if err = s.fetch(ctx, header, []Want{want}); err != nil {
		return common.Hash{}, err
	}
	return word(s.known, of.Root, slot)
}

// Code implements [evm.State].
func (s *State) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	if hash == types.EmptyCodeHash {
		return nil, nil
	}
	if code, ok := s.code(hash); ok {
		return code, nil
	}
	holder, ok := s.remote.holders.Get(hash)
	if !ok {
		return nil, fmt.Errorf("%w: code %x of an account that is not known", evm.ErrMissing, hash)
	}
	header, err := s.at(ctx)
	if err != nil {
		return nil, err
	}
	code, err := s.fetchCode(ctx, header, holder, hash)
	if err == nil {
		s.remote.codes.Add(hash, code)
	}
	return code, err
}

// code returns a code that is known.
func (s *State) code(hash common.Hash) ([]byte, bool) {
	if code, ok := s.remote.codes.Get(hash); ok {
		return code, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	code, ok := s.given[hash]
	return code, ok
}

// known returns a trie node that is known.
func (s *State) known(hash common.Hash) ([]byte, bool) {
	s.mu.Lock()
	blob, ok := s.given[hash]
	s.mu.Unlock()
	if ok {
		return blob, true
	}
	return s.remote.tries.Get(hash)
}

// address returns the address behind a key.
func (r *Remote) address(key common.Hash) (common.Address, error) {
	name, ok := r.names.Get(key)
	if !ok || len(name) != common.AddressLength {
		return common.Address{}, fmt.Errorf("account %x: %w", key, evm.ErrUnnamed)
	}
	return common.BytesToAddress(name), nil
}

// slot returns the slot behind a key.
func (r *Remote) slot(key common.Hash) (common.Hash, error) {
	name, ok := r.names.Get(key)
	if !ok || len(name) != common.HashLength {
		return common.Hash{}, fmt.Errorf("slot %x: %w", key, evm.ErrUnnamed)
	}
	return common.BytesToHash(name), nil
}
