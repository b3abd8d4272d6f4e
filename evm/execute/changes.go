package execute

import (
	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// changeRecorder records what the steps of a block change. [collidingState] names what may change before it does, and the
// values are compared at the end of the step. It belongs to one block.
type changeRecorder struct {
	state    *state.StateDB
	accounts map[common.Address]*recordedAccount
	slots    map[warmSlot]*recordedSlot
	codes    map[common.Hash][]byte  // that accounts got
	written  map[common.Address]bool // accounts whose slots an earlier step has changed

	touchedAccounts []*recordedAccount // in the current step
	touchedSlots    []*recordedSlot
	// wiped means that an account was destroyed whose slots had values. That its slots are zero from then on cannot be said
	// without naming each of them.
	wiped bool
}

type recordedAccount struct {
	address common.Address
	recordedKey[evm.Account]
}

type recordedSlot struct {
	warmSlot
	recordedKey[common.Hash]
}

// recordedKey has the values that an account or slot had after the steps that changed it.
type recordedKey[V comparable] struct {
	first, last V
	touched     bool // in the current step
	values      []evm.Step[V]
}

// end ends a step, with the value that it leaves.
func (k *recordedKey[V]) end(step int, value V) {
	k.touched = false
	if value != k.last {
		k.last, k.values = value, append(k.values, evm.Step[V]{Step: step, Value: value})
	}
}

// recorded returns the values, or nil if there are none.
func (k *recordedKey[V]) recorded() *evm.KeyChanges[V] {
	if len(k.values) == 0 {
		return nil
	}
	return &evm.KeyChanges[V]{Values: k.values, Back: k.first == k.last}
}

func newChangeRecorder(statedb *state.StateDB) *changeRecorder {
	return &changeRecorder{
		state: statedb, accounts: make(map[common.Address]*recordedAccount), slots: make(map[warmSlot]*recordedSlot),
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

// touchAccount notes that an account may be about to change. A nil recorder ignores it.
func (c *changeRecorder) touchAccount(address common.Address) {
	if c == nil {
		return
	}
	k := c.accounts[address]
	if k == nil {
		k = &recordedAccount{address: address}
		k.first = c.account(address)
		k.last = k.first
		c.accounts[address] = k
	}
	if !k.touched {
		k.touched = true
		c.touchedAccounts = append(c.touchedAccounts, k)
	}
}

// touchSlot is touchAccount for a slot.
func (c *changeRecorder) touchSlot(address common.Address, slot common.Hash) {
	if c == nil {
		return
	}
	at := warmSlot{address, slot}
	k := c.slots[at]
	if k == nil {
		k = &recordedSlot{warmSlot: at}
		k.first = c.state.GetState(address, slot)
		k.last = k.first
		c.slots[at] = k
	}
	if !k.touched {
		k.touched = true
		c.touchedSlots = append(c.touchedSlots, k)
	}
}

// account returns an account as it is.
func (c *changeRecorder) account(address common.Address) evm.Account {
	if !c.state.Exist(address) {
		return evm.Account{}
	}
	return evm.Account{
		Exists: true, HasStorage: isStored(c.state.GetStorageRoot(address)),
		Nonce: c.state.GetNonce(address), Balance: *c.state.GetBalance(address), CodeHash: c.state.GetCodeHash(address),
	}
}

// end ends a step, after the state was finalised.
func (c *changeRecorder) end(step int) {
	if c == nil {
		return
	}
	for _, k := range c.touchedAccounts {
		before, after := k.last, c.account(k.address)
		if before.Exists && !after.Exists && (before.HasStorage || c.written[k.address]) {
			c.wiped = true
		}
		if after.CodeHash != before.CodeHash && after.Exists {
			c.codes[after.CodeHash] = c.state.GetCode(k.address)
		}
		k.end(step, after)
	}
	for _, k := range c.touchedSlots {
		k.end(step, c.state.GetState(k.address, k.slot))
		if len(k.values) == 1 {
			c.written[k.address] = true
		}
	}
	c.touchedAccounts, c.touchedSlots = c.touchedAccounts[:0], c.touchedSlots[:0]
}

// recorded returns all changes, once all steps have ended, or nil if they cannot be said.
func (c *changeRecorder) recorded(transactions int) *evm.Changes {
	if c == nil || c.wiped {
		return nil
	}
	changes := &evm.Changes{
		Transactions: transactions,
		Accounts:     make(map[common.Hash]*evm.KeyChanges[evm.Account], len(c.accounts)),
		Slots:        make(map[evm.SlotPlace]*evm.KeyChanges[common.Hash], len(c.slots)),
		Codes:        make(map[common.Hash][]byte),
	}
	for address, k := range c.accounts {
		recorded := k.recorded()
		if recorded == nil {
			continue
		}
		changes.Accounts[evm.HashAddress(address)] = recorded
		for _, step := range recorded.Values {
			hash := step.Value.CodeHash
			if code := c.codes[hash]; len(code) > 0 && hash != k.first.CodeHash && hash != k.last.CodeHash {
				changes.Codes[hash] = code
			}
		}
	}
	for at, k := range c.slots {
		if recorded := k.recorded(); recorded != nil {
			changes.Slots[evm.SlotPlace{Address: evm.HashAddress(at.address), Slot: evm.HashSlot(at.slot)}] = recorded
		}
	}
	return changes
}

// The methods below tell the recorder what may change.

// CreateAccount implements vm.StateDB.
func (s *collidingState) CreateAccount(address common.Address) {
	s.changes.touchAccount(address)
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
	s.changes.touchAccount(address)
	return s.StateDB.SetCode(address, code, reason)
}

// SetState implements vm.StateDB.
func (s *collidingState) SetState(address common.Address, slot, value common.Hash) common.Hash {
	s.changes.touchSlot(address, slot)
	return s.StateDB.SetState(address, slot, value)
}

// SelfDestruct implements vm.StateDB.
func (s *collidingState) SelfDestruct(address common.Address) {
	s.changes.touchAccount(address)
	s.StateDB.SelfDestruct(address)
}
