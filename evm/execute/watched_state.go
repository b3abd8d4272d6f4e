package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// watchedState is the state of a transaction that is traced: it tells the tracer of
// changes. All else is as in [collidingState].
type watchedState struct {
	vm.StateDB
	colliding *collidingState
}

// GetNonce implements vm.StateDB.
func (s *watchedState) GetNonce(address common.Address) uint64 { return s.colliding.GetNonce(address) }

// Prepare implements vm.StateDB. The block access list of a replay is not used.
func (s *watchedState) Prepare(rules params.Rules, sender, coinbase common.Address, to *common.Address, precompiles []common.Address, list types.AccessList) {
	rules.IsAmsterdam = false
	s.colliding.Prepare(rules, sender, coinbase, to, precompiles, list)
}

// Snapshot implements vm.StateDB.
func (s *watchedState) Snapshot() int { return s.colliding.Snapshot() }

// RevertToSnapshot implements vm.StateDB.
func (s *watchedState) RevertToSnapshot(id int) { s.colliding.RevertToSnapshot(id) }

// AddressInAccessList implements vm.StateDB.
func (s *watchedState) AddressInAccessList(address common.Address) bool {
	return s.colliding.AddressInAccessList(address)
}

// SlotInAccessList implements vm.StateDB.
func (s *watchedState) SlotInAccessList(address common.Address, slot common.Hash) (bool, bool) {
	return s.colliding.SlotInAccessList(address, slot)
}

// AddAddressToAccessList implements vm.StateDB.
func (s *watchedState) AddAddressToAccessList(address common.Address) {
	s.colliding.AddAddressToAccessList(address)
}

// AddSlotToAccessList implements vm.StateDB.
func (s *watchedState) AddSlotToAccessList(address common.Address, slot common.Hash) {
	s.colliding.AddSlotToAccessList(address, slot)
}
