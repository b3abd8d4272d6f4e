package scratch

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/stateless"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/params"
)

// Prepare implements vm.StateDB. The state must be as it was before the last transaction, if
// there was one.
func (s *State) Prepare(rules params.Rules, sender, coinbase common.Address, to *common.Address, precompiles []common.Address, list types.AccessList) {
	s.run++
	s.precompiles = precompiles
	clear(s.transient)
	s.AddAddressToAccessList(sender)
	if to != nil {
		s.AddAddressToAccessList(*to)
	}
	for _, tuple := range list {
		s.AddAddressToAccessList(tuple.Address)
		for _, key := range tuple.StorageKeys {
			s.AddSlotToAccessList(tuple.Address, key)
		}
	}
	if rules.IsShanghai { // EIP-3651
		s.AddAddressToAccessList(coinbase)
	}
}

// Finalise makes the changes before the first transaction, overrides, part of the state that it
// begins with. It does not support any other use.
func (s *State) Finalise(params.Rules) *bal.ConstructionBlockAccessList {
	if s.run > 1 {
		panic("scratch: a transaction is not finalised, but reverted")
	}
	for _, c := range s.journal.changes {
		if c.kind == slotValue {
			v := &s.slots.rows[c.row].value
			v.origin = v.value
		}
	}
	s.journal.reset()
	s.refund = 0
	return nil
}

// AddressInAccessList implements vm.StateDB.
func (s *State) AddressInAccessList(address common.Address) bool {
	row, ok := s.accounts.find(address)
	return ok && s.accounts.rows[row].value.warm == s.run || slices.Contains(s.precompiles, address)
}

// AddAddressToAccessList implements vm.StateDB.
func (s *State) AddAddressToAccessList(address common.Address) {
	if !s.AddressInAccessList(address) {
		a, row := s.entry(address)
		s.journal.keepCold(accountWarmth, row)
		a.warm = s.run
	}
}

// SlotInAccessList implements vm.StateDB.
func (s *State) SlotInAccessList(address common.Address, key common.Hash) (addressIs, slotIs bool) {
	row, ok := s.slots.find(place{address, key})
	return s.AddressInAccessList(address), ok && s.slots.rows[row].value.warm == s.run
}

// AddSlotToAccessList implements vm.StateDB.
func (s *State) AddSlotToAccessList(address common.Address, key common.Hash) {
	s.AddAddressToAccessList(address)
	if v, row := s.slotEntry(place{address, key}); v.warm != s.run {
		s.journal.keepCold(slotWarmth, row)
		v.warm = s.run
	}
}

// AddRefund implements vm.StateDB.
func (s *State) AddRefund(gas uint64) {
	s.journal.keepRefund(s.refund)
	s.refund += gas
}

// SubRefund implements vm.StateDB.
func (s *State) SubRefund(gas uint64) {
	if gas > s.refund {
		panic(fmt.Sprintf("scratch: the refund counter is %d, below %d", s.refund, gas))
	}
	s.journal.keepRefund(s.refund)
	s.refund -= gas
}

// GetRefund implements vm.StateDB.
func (s *State) GetRefund() uint64 { return s.refund }

// AddLog implements vm.StateDB. Logs are not kept.
func (s *State) AddLog(*types.Log) {}

// AddPreimage implements vm.StateDB. Preimages are not kept.
func (s *State) AddPreimage(common.Hash, []byte) {}

// SetTxContext implements vm.StateDB. Only logs need it, and they are not kept.
func (s *State) SetTxContext(common.Hash, int, uint32) {}

// Witness implements vm.StateDB. There is none.
func (s *State) Witness() *stateless.Witness { return nil }

// AccessEvents implements vm.StateDB. There are none.
func (s *State) AccessEvents() *state.AccessEvents { return nil }
