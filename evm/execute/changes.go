package execute

import (
	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// changeRecorder records what the steps of a block change. [collidingState] names accounts before they may change, and slots
// with the value before once they may have. The values are compared at the end of the step. It belongs to one block.
type changeRecorder struct {
	state    *state.StateDB
	accounts recordedKeys[common.Address, evm.Account]
	slots    recordedKeys[warmSlot, common.Hash]
	codes    map[common.Hash][]byte  // that accounts got
	written  map[common.Address]bool // accounts whose slots an earlier step has changed
	// wiped means that an account was destroyed whose slots had values. That its slots are zero from then on cannot be said
	// without naming each of them.
	wiped bool
}

func newChangeRecorder(statedb *state.StateDB) *changeRecorder {
	return &changeRecorder{
		state: statedb, accounts: newRecordedKeys[common.Address, evm.Account](), slots: newRecordedKeys[warmSlot, common.Hash](),
		codes: make(map[common.Hash][]byte), written: make(map[common.Address]bool),
	}
}

// recorderOf returns the recorder of a block that is executed, or nil if its changes are not recorded. Before Byzantium, the
// storage roots that a transaction sees depend on those before it, and from Amsterdam on the access list has what has
// changed. The block of the DAO fork changes accounts before its first step.
func (e *Executor) recorderOf(header *types.Header, statedb *state.StateDB) *changeRecorder {
	rules := e.rules(header)
	if !e.traces || !rules.IsByzantium || rules.IsAmsterdam || e.isDAOFork(header) {
		return nil
	}
	return newChangeRecorder(statedb)
}

// touchAccount notes that the nonce or the balance of an account may be about to change, and with them whether it exists. A nil
// recorder ignores it.
func (c *changeRecorder) touchAccount(address common.Address) {
	c.touchAccountAs(address, touched)
}

// touchCode is touchAccount for all that an account has.
func (c *changeRecorder) touchCode(address common.Address) {
	c.touchAccountAs(address, touchedCode)
}

func (c *changeRecorder) touchAccountAs(address common.Address, as touch) {
	if c == nil {
		return
	}
	if k, isNew := c.accounts.touch(address, as); isNew {
		k.first = c.account(address, evm.Account{}, as)
		k.last = k.first
	}
}

// touchSlot notes that a slot may have changed from a value. A nil recorder ignores it.
func (c *changeRecorder) touchSlot(address common.Address, slot, before common.Hash) {
	if c == nil {
		return
	}
	if k, isNew := c.slots.touch(warmSlot{address, slot}, touched); isNew {
		k.first, k.last = before, before
	}
}

// account returns an account as it is, given what it was before the step, or nothing, and how the step has touched it.
func (c *changeRecorder) account(address common.Address, last evm.Account, as touch) evm.Account {
	if !c.state.Exist(address) {
		return evm.Account{}
	}
	account := evm.Account{
		Exists: true, HasStorage: last.HasStorage,
		Nonce: c.state.GetNonce(address), Balance: *c.state.GetBalance(address), CodeHash: last.CodeHash,
	}
	if as == touchedCode || !last.Exists {
		account.HasStorage, account.CodeHash = isStored(c.state.GetStorageRoot(address)), c.state.GetCodeHash(address)
	}
	return account
}

// end ends a step, after the state was finalised.
func (c *changeRecorder) end(step int) {
	if c == nil {
		return
	}
	for k, as := range c.accounts.takeTouched() {
		before, after := k.last, c.account(k.at, k.last, as)
		if before.Exists && !after.Exists && (before.HasStorage || c.written[k.at]) {
			c.wiped = true
		}
		if after.CodeHash != before.CodeHash && after.Exists {
			c.codes[after.CodeHash] = c.state.GetCode(k.at)
		}
		c.accounts.end(k, step, after)
	}
	for k := range c.slots.takeTouched() {
		if c.slots.end(k, step, c.state.GetState(k.at.address, k.at.slot)); k.steps == 1 {
			c.written[k.at.address] = true
		}
	}
}

// recorded returns all changes, once all steps have ended, or nil if they cannot be said.
func (c *changeRecorder) recorded(transactions int) *evm.Changes {
	if c == nil || c.wiped {
		return nil
	}
	changes := &evm.Changes{
		Transactions: transactions,
		Accounts:     make([]evm.AccountChanges, 0, len(c.accounts.keys)),
		Slots:        make([]evm.SlotChanges, 0, len(c.slots.keys)),
		Codes:        make(map[common.Hash][]byte),
	}
	for k, values := range c.accounts.changed() {
		changes.Accounts = append(changes.Accounts, evm.AccountChanges{
			Address: evm.HashAddress(k.at), KeyChanges: evm.KeyChanges[evm.Account]{Values: values, Back: k.first == k.last},
		})
		for i := range values {
			hash := values[i].Value.CodeHash
			if code := c.codes[hash]; len(code) > 0 && hash != k.first.CodeHash && hash != k.last.CodeHash {
				changes.Codes[hash] = code
			}
		}
	}
	for k, values := range c.slots.changed() {
		changes.Slots = append(changes.Slots, evm.SlotChanges{
			Address: evm.HashAddress(k.at.address), Slot: evm.HashSlot(k.at.slot),
			KeyChanges: evm.KeyChanges[common.Hash]{Values: values, Back: k.first == k.last},
		})
	}
	return changes
}

// mayHaveChanged returns the slots that may have changed, by keccak256 of their addresses and slots, and also the accounts.
func (c *changeRecorder) mayHaveChanged() map[common.Hash][]common.Hash {
	if c == nil {
		return nil
	}
	slots := make(map[common.Hash][]common.Hash)
	for i := range c.accounts.keys {
		slots[evm.HashAddress(c.accounts.keys[i].at)] = nil
	}
	for i := range c.slots.keys {
		at := c.slots.keys[i].at
		address := evm.HashAddress(at.address)
		slots[address] = append(slots[address], evm.HashSlot(at.slot))
	}
	return slots
}

// The methods below tell the recorder what may change, and of slots what may have changed.

// CreateAccount implements vm.StateDB.
func (s *collidingState) CreateAccount(address common.Address) {
	s.changes.touchCode(address)
	s.StateDB.CreateAccount(address)
}

// AddBalance implements vm.StateDB.
func (s *collidingState) AddBalance(address common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason) uint256.Int {
	s.changes.touchAccount(address)
	return s.StateDB.AddBalance(address, amount, reason)
}

// SubBalance implements vm.StateDB.
func (s *collidingState) SubBalance(address common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason) uint256.Int {
	s.changes.touchAccount(address)
	return s.StateDB.SubBalance(address, amount, reason)
}

// SetNonce implements vm.StateDB.
func (s *collidingState) SetNonce(address common.Address, nonce uint64, reason tracing.NonceChangeReason) {
	s.changes.touchAccount(address)
	s.StateDB.SetNonce(address, nonce, reason)
}

// SetCode implements vm.StateDB.
func (s *collidingState) SetCode(address common.Address, code []byte, reason tracing.CodeChangeReason) []byte {
	s.changes.touchCode(address)
	return s.StateDB.SetCode(address, code, reason)
}

// SetState implements vm.StateDB.
func (s *collidingState) SetState(address common.Address, slot, value common.Hash) common.Hash {
	before := s.StateDB.SetState(address, slot, value)
	s.changes.touchSlot(address, slot, before)
	return before
}

// SelfDestruct implements vm.StateDB.
func (s *collidingState) SelfDestruct(address common.Address) {
	s.changes.touchCode(address)
	s.StateDB.SelfDestruct(address)
}
