package evm

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Changes are what the steps of a block have changed. Step 0 are the system calls before its transactions, step i is
// transaction i-1, and the step after the last transaction is all that follows, such as withdrawals:
//
//	transaction 4 takes the balance of A from 10 to 7, and transaction 6 to 9:   A: step 5: 7, step 7: 9
//
// They are immutable.
type Changes struct {
	Transactions int
	Accounts     []AccountChanges // in any order
	Slots        []SlotChanges    // in any order
	// Codes are those that accounts had neither before nor after the block, by hash.
	Codes map[common.Hash][]byte
}

// AccountChanges are the values of an account.
type AccountChanges struct {
	Address common.Hash // keccak256 of the address
	KeyChanges[Account]
}

// SlotChanges are the values of a slot.
type SlotChanges struct {
	Address, Slot common.Hash // keccak256 of the address and of the slot
	KeyChanges[common.Hash]
}

// KeyChanges are the values of an account or slot in a block, in the order of steps. There is at least one.
type KeyChanges[V any] struct {
	Values []Step[V]
	// Back means that the last value is the one from before the block.
	Back bool
}

// Step is a value after a step of a block.
type Step[V any] struct {
	Step  int
	Value V
}

// Account is an account within a block. If it does not exist, all else is zero.
type Account struct {
	Exists     bool
	HasStorage bool // before the block
	Nonce      uint64
	Balance    uint256.Int
	CodeHash   common.Hash
}
