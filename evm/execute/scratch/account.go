package scratch

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// account is the entry of an address. An absent account has zero values.
type account struct {
	read          bool // what follows is known, up to warm
	exists        bool
	isContract    bool // made one by this transaction
	selfDestructs bool
	cleared       bool // slots that the reader has do not count
	nonce         uint64
	balance       *uint256.Int // not changed in place: callers may hold it
	codeHash      common.Hash
	code          []byte // nil before it is read

	warm uint32 // the State's run in which it was used; in other runs it is cold
}

// entry returns the entry of an address. The pointer is valid until the next call of entry.
func (s *State) entry(address common.Address) (a *account, row int) {
	row, ok := s.accounts.find(address)
	if !ok {
		row = s.accounts.add(address, s.reader.Grow(accountBytes))
	}
	return &s.accounts.rows[row].value, row
}

// account is entry, with the account read.
func (s *State) account(address common.Address) (a *account, row int) {
	a, row = s.entry(address)
	if a.read {
		return a, row
	}
	a.read = true
	if before, err := s.reader.Account(address); err == nil && before != nil {
		a.exists, a.nonce, a.balance, a.codeHash = true, before.Nonce, before.Balance, common.Hash(before.CodeHash)
	}
	return a, row
}

// change returns an account that is about to be changed, and creates it if it is absent.
func (s *State) change(address common.Address) *account {
	a, row := s.account(address)
	s.journal.keepAccount(row, a)
	if !a.exists {
		a.create()
	}
	return a
}

func (a *account) create() {
	*a = account{read: true, exists: true, cleared: a.cleared, balance: common.U2560, codeHash: types.EmptyCodeHash, warm: a.warm}
}

// empty is what EIP-161 calls empty.
func (a *account) empty() bool {
	return !a.exists || a.nonce == 0 && a.balance.IsZero() && a.codeHash == types.EmptyCodeHash
}

// Exist implements vm.StateDB.
func (s *State) Exist(address common.Address) bool {
	a, _ := s.account(address)
	return a.exists
}

// Empty implements vm.StateDB.
func (s *State) Empty(address common.Address) bool {
	a, _ := s.account(address)
	return a.empty()
}

// Touch implements vm.StateDB.
func (s *State) Touch(address common.Address) { s.account(address) }

// CreateAccount implements vm.StateDB.
func (s *State) CreateAccount(address common.Address) { s.change(address).create() }

// CreateContract implements vm.StateDB.
func (s *State) CreateContract(address common.Address) {
	if a, row := s.account(address); !a.isContract {
		s.journal.keepAccount(row, a)
		a.isContract = true
	}
}

// IsNewContract implements vm.StateDB.
func (s *State) IsNewContract(address common.Address) bool {
	a, _ := s.account(address)
	return a.isContract
}

// SelfDestruct implements vm.StateDB.
func (s *State) SelfDestruct(address common.Address) {
	if a, row := s.account(address); a.exists && !a.selfDestructs {
		s.journal.keepAccount(row, a)
		a.selfDestructs = true
	}
}

// HasSelfDestructed implements vm.StateDB.
func (s *State) HasSelfDestructed(address common.Address) bool {
	a, _ := s.account(address)
	return a.selfDestructs
}

// GetBalance implements vm.StateDB.
func (s *State) GetBalance(address common.Address) *uint256.Int {
	if a, _ := s.account(address); a.exists {
		return a.balance
	}
	return common.U2560
}

// AddBalance implements vm.StateDB.
func (s *State) AddBalance(address common.Address, amount *uint256.Int, _ tracing.BalanceChangeReason) uint256.Int {
	return s.setBalance(address, amount, (*uint256.Int).Add)
}

// SubBalance implements vm.StateDB.
func (s *State) SubBalance(address common.Address, amount *uint256.Int, _ tracing.BalanceChangeReason) uint256.Int {
	return s.setBalance(address, amount, (*uint256.Int).Sub)
}

// setBalance changes a balance by an amount and returns it as it was. An amount of zero creates
// the account, too.
func (s *State) setBalance(address common.Address, amount *uint256.Int, operation func(z, x, y *uint256.Int) *uint256.Int) uint256.Int {
	if a, _ := s.account(address); a.exists && amount.IsZero() {
		return *a.balance
	}
	a := s.change(address)
	before := a.balance
	if !amount.IsZero() {
		a.balance = operation(new(uint256.Int), before, amount)
	}
	return *before
}

// SetBalance sets a balance. The state keeps amount.
func (s *State) SetBalance(address common.Address, amount *uint256.Int, _ tracing.BalanceChangeReason) {
	s.change(address).balance = amount
}

// GetNonce implements vm.StateDB.
func (s *State) GetNonce(address common.Address) uint64 {
	a, _ := s.account(address)
	return a.nonce
}

// SetNonce implements vm.StateDB.
func (s *State) SetNonce(address common.Address, nonce uint64, _ tracing.NonceChangeReason) {
	s.change(address).nonce = nonce
}

// GetCodeHash implements vm.StateDB.
func (s *State) GetCodeHash(address common.Address) common.Hash {
	a, _ := s.account(address)
	return a.codeHash
}

// GetCode implements vm.StateDB.
func (s *State) GetCode(address common.Address) []byte {
	a, _ := s.account(address)
	if a.unread() {
		a.code = s.reader.Code(address, a.codeHash)
	}
	return a.code
}

// GetCodeSize implements vm.StateDB. The code is not kept.
func (s *State) GetCodeSize(address common.Address) int {
	a, _ := s.account(address)
	if a.unread() {
		return s.reader.CodeSize(address, a.codeHash)
	}
	return len(a.code)
}

// unread reports whether an account has code that was not read.
func (a *account) unread() bool {
	return a.exists && len(a.code) == 0 && a.codeHash != types.EmptyCodeHash
}

// SetCode implements vm.StateDB.
func (s *State) SetCode(address common.Address, code []byte, _ tracing.CodeChangeReason) []byte {
	a := s.change(address)
	before := a.code
	a.code, a.codeHash = code, crypto.Keccak256Hash(code)
	return before
}
