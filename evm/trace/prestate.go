package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/tracers/native"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// prestateTracerName is the name of go-ethereum's tracer that prestateTracer stands in for.
const prestateTracerName = "prestateTracer"

// prestateTracer collects the accounts and slots that a run touches, as they were before
// it, and appends them in the format of geth's tracer of that name. The library's encodes
// them by reflection, which takes more than half as long as the run.
//
//	{"0x..":{"balance":"0x1","code":"0x..","codeHash":"0x..","nonce":1,"storage":{"0x..":"0x.."}}, ...}
//
// With diffMode it appends only what the run changes, as it was and as it is:
//
//	{"post":{"0x..":{"balance":"0x2"}}, "pre":{"0x..":{"balance":"0x1"}}}
type prestateTracer struct {
	config native.PrestateTracerConfig
	allowance
	stopper
	chain    *params.ChainConfig
	env      *tracing.VMContext
	prague   bool
	cancun   bool
	spurious bool // the rules of EIP-158: an account without anything does not exist
	accounts map[common.Address]*touchedAccount
	result   int  // estimate of the length of the answer with the result
	done     bool // the run has ended, and env has the state after it
}

// touchedAccount is an account before a run.
type touchedAccount struct {
	balance  uint256.Int
	nonce    uint64
	code     []byte
	codeHash common.Hash                 // zero if there is no code
	slots    map[common.Hash]common.Hash // nil before the first
	existed  bool
	created  bool // by the run
	deleted  bool // by the run
}

// slotLength is the length of a slot in the answer.
const slotLength = 2*(2*common.HashLength+4) + 2

func newPrestateTracer(options json.RawMessage, chain *params.ChainConfig, length int, room Room, end context.CancelCauseFunc) (*prestateTracer, error) {
	t := &prestateTracer{
		allowance: allowance{room: room, end: end}, chain: chain, result: length,
		accounts: make(map[common.Address]*touchedAccount),
	}
	if len(options) > 0 {
		if err := json.Unmarshal(options, &t.config); err != nil {
			return nil, err
		}
	}
	if t.config.DiffMode && t.config.IncludeEmpty {
		return nil, errors.New("cannot use diffMode with includeEmpty")
	}
	return t, nil
}

func (t *prestateTracer) hooks() *tracing.Hooks {
	return &tracing.Hooks{
		OnTxStart: t.onTxStart,
		OnTxEnd:   func(_ *types.Receipt, err error) { t.done = err == nil },
		OnOpcode:  t.onOpcode,
	}
}

func (t *prestateTracer) onTxStart(env *tracing.VMContext, tx *types.Transaction, from common.Address) {
	t.env = env
	t.prague, t.cancun = t.chain.IsPrague(env.BlockNumber, env.Time), t.chain.IsCancun(env.BlockNumber, env.Time)
	t.spurious = t.chain.IsEIP158(env.BlockNumber)
	t.touch(from)
	if to := tx.To(); to == nil {
		t.touch(crypto.CreateAddress(from, env.StateDB.GetNonce(from))).created = true
	} else {
		t.touchTarget(*to)
	}
	t.touch(env.Coinbase)
	for _, authorization := range tx.SetCodeAuthorizations() {
		if authority, err := authorization.Authority(); err == nil {
			t.touch(authority)
		}
	}
}

// touchTarget adds an account that is called, and the one whose code it delegates to.
func (t *prestateTracer) touchTarget(address common.Address) {
	t.touch(address)
	if !t.prague {
		return
	}
	if target, ok := types.ParseDelegation(t.env.StateDB.GetCode(address)); ok {
		t.touch(target)
	}
}

// touch adds an account unless it is there.
func (t *prestateTracer) touch(address common.Address) *touchedAccount {
	if a := t.accounts[address]; a != nil {
		return a
	}
	db := t.env.StateDB
	a := &touchedAccount{balance: *db.GetBalance(address), nonce: db.GetNonce(address), code: db.GetCode(address)}
	if hash := db.GetCodeHash(address); hash != types.EmptyCodeHash {
		a.codeHash = hash
	}
	a.existed = db.Exist(address) && !(t.spurious && a.isEmpty())
	t.accounts[address] = a
	if !t.config.DiffMode && !t.config.DisableCode {
		t.grow(2 * len(a.code))
	}
	return a
}

// touchSlot adds a slot unless it is there.
func (t *prestateTracer) touchSlot(address common.Address, slot common.Hash) {
	a := t.touch(address)
	if _, ok := a.slots[slot]; ok || t.config.DisableStorage {
		return
	}
	if a.slots == nil {
		a.slots = make(map[common.Hash]common.Hash)
	}
	a.slots[slot] = t.env.StateDB.GetState(address, slot)
	if !t.config.DiffMode {
		t.grow(slotLength)
	}
}

// grow counts bytes of the answer.
func (t *prestateTracer) grow(n int) {
	t.result += n
	t.check(t.result)
}

func (t *prestateTracer) onOpcode(_ uint64, opcode byte, _, _ uint64, scope tracing.OpContext, _ []byte, _ int, err error) {
	op := vm.OpCode(opcode)
	switch op {
	case vm.SLOAD, vm.SSTORE, vm.EXTCODECOPY, vm.EXTCODEHASH, vm.EXTCODESIZE, vm.BALANCE, vm.SELFDESTRUCT,
		vm.CALL, vm.CALLCODE, vm.DELEGATECALL, vm.STATICCALL, vm.CREATE, vm.CREATE2:
	default:
		return
	}
	if err != nil || t.ended || t.stopped() != nil {
		return
	}
	// An instruction without an error has all that it takes from the stack.
	stack, caller := scope.StackData(), scope.Address()
	top := len(stack) - 1
	switch op {
	case vm.SLOAD, vm.SSTORE:
		t.touchSlot(caller, stack[top].Bytes32())
	case vm.CALL, vm.CALLCODE, vm.DELEGATECALL, vm.STATICCALL:
		t.touchTarget(stack[top-1].Bytes20())
	case vm.CREATE:
		t.touch(crypto.CreateAddress(caller, t.env.StateDB.GetNonce(caller))).created = true
	case vm.CREATE2:
		code := memoryAt(scope.MemoryData(), stack[top-1].Uint64(), stack[top-2].Uint64())
		t.touch(crypto.CreateAddress2(caller, stack[top-3].Bytes32(), crypto.Keccak256(code))).created = true
	default:
		t.touch(stack[top].Bytes20())
		if destroyer := t.accounts[caller]; op == vm.SELFDESTRUCT && destroyer != nil {
			destroyer.deleted = destroyer.deleted || !t.cancun || destroyer.created // EIP-6780
		}
	}
}

// memoryAt returns a part of the memory, which reads as zeros behind its end. The
// instruction that names it has been paid for.
func memoryAt(memory []byte, offset, size uint64) []byte {
	if size == 0 {
		return nil
	}
	part := make([]byte, size)
	if offset < uint64(len(memory)) {
		copy(part, memory[offset:])
	}
	return part
}

// appendResult appends the accounts.
func (t *prestateTracer) appendResult(out []byte) ([]byte, error) {
	if err := t.stopped(); err != nil {
		return out, err
	}
	if !t.config.DiffMode {
		return t.appendAccounts(out, func(out []byte, _ common.Address, a *touchedAccount) []byte {
			if t.done && !t.config.IncludeEmpty && a.isEmpty() {
				return out
			}
			return t.appendBefore(out, a, nil)
		})
	}
	after := make(map[common.Address]*accountAfter, len(t.accounts))
	if t.done {
		for address, a := range t.accounts {
			a.deleted = a.deleted && !t.keepsBalance(address)
			after[address] = t.after(address, a)
		}
	}
	out, err := t.appendAccounts(append(out, `{"post":`...), func(out []byte, address common.Address, a *touchedAccount) []byte {
		if changes := after[address]; !a.deleted && changes.any() {
			return changes.append(out)
		}
		return out
	})
	if err != nil {
		return out, err
	}
	out, err = t.appendAccounts(append(out, `,"pre":`...), func(out []byte, address common.Address, a *touchedAccount) []byte {
		if t.done && (a.isEmpty() || !a.deleted && !after[address].any()) {
			return out
		}
		return t.appendBefore(out, a, after[address])
	})
	return append(out, '}'), err
}

// keepsBalance reports whether an account that ran SELFDESTRUCT has ether after the run: from Amsterdam on, ether that it
// sends to itself or gets later is not burned (EIP-8246), and so it exists. geth's tracer counts it as deleted.
func (t *prestateTracer) keepsBalance(address common.Address) bool {
	return t.chain.IsAmsterdam(t.env.BlockNumber, t.env.Time) && !t.env.StateDB.GetBalance(address).IsZero()
}

// appendAccounts appends an object with the accounts for which one appends something.
func (t *prestateTracer) appendAccounts(out []byte, one func([]byte, common.Address, *touchedAccount) []byte) ([]byte, error) {
	out = append(out, '{')
	first := true
	for _, address := range slices.SortedFunc(maps.Keys(t.accounts), common.Address.Cmp) {
		before := len(out)
		if !first {
			out = append(out, ',')
		}
		named := append(appendBytes(out, address[:]), ':')
		with := one(named, address, t.accounts[address])
		if len(with) == len(named) {
			out = out[:before]
			continue
		}
		out, first = with, false
		if err := t.room.Check(len(out)); err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

// isEmpty reports whether there was nothing but perhaps storage.
func (a *touchedAccount) isEmpty() bool {
	return a.nonce == 0 && len(a.code) == 0 && a.balance.IsZero()
}

// appendBefore appends an account as it was. Slots that were zero, or that after says are
// unchanged, are left out if after is given.
func (t *prestateTracer) appendBefore(out []byte, a *touchedAccount, after *accountAfter) []byte {
	out = appendWord(append(out, `{"balance":`...), &a.balance)
	if len(a.code) > 0 && !t.config.DisableCode {
		out = appendBytes(append(out, `,"code":`...), a.code)
	}
	if a.codeHash != (common.Hash{}) {
		out = appendBytes(append(out, `,"codeHash":`...), a.codeHash[:])
	}
	if a.nonce != 0 {
		out = strconv.AppendUint(append(out, `,"nonce":`...), a.nonce, 10)
	}
	slots := a.slots
	if after != nil && !a.deleted {
		slots = after.changed
	}
	if len(slots) > 0 {
		out = appendSlots(append(out, `,"storage":`...), slots)
	}
	return append(out, '}')
}

// accountAfter is how an account differs after a run. Members that are nil are unchanged.
type accountAfter struct {
	balance  *uint256.Int
	nonce    uint64 // 0: unchanged, or 0
	renonced bool
	code     []byte
	recoded  bool
	codeHash *common.Hash
	slots    map[common.Hash]common.Hash // with another value than before, and not zero
	changed  map[common.Hash]common.Hash // their values before, unless zero
	written  bool                        // a slot has changed
}

// after compares an account with the state after the run.
func (t *prestateTracer) after(address common.Address, a *touchedAccount) *accountAfter {
	db, changes := t.env.StateDB, new(accountAfter)
	if balance := db.GetBalance(address); !balance.Eq(&a.balance) {
		changes.balance = balance
	}
	if nonce := db.GetNonce(address); nonce != a.nonce {
		changes.nonce, changes.renonced = nonce, true
	}
	before := a.codeHash
	if before == (common.Hash{}) {
		before = types.EmptyCodeHash
	}
	if hash := db.GetCodeHash(address); hash != before {
		changes.codeHash = &hash
	}
	if !t.config.DisableCode {
		if code := db.GetCode(address); !bytes.Equal(code, a.code) {
			changes.code, changes.recoded = code, true
		}
	}
	for slot, before := range a.slots {
		value := db.GetState(address, slot)
		if value == before {
			continue
		}
		changes.written = true
		if value != (common.Hash{}) {
			set(&changes.slots, slot, value)
		}
		if before != (common.Hash{}) {
			set(&changes.changed, slot, before)
		}
	}
	return changes
}

func set(slots *map[common.Hash]common.Hash, slot, value common.Hash) {
	if *slots == nil {
		*slots = make(map[common.Hash]common.Hash)
	}
	(*slots)[slot] = value
}

// any reports whether anything has changed.
func (c *accountAfter) any() bool {
	return c != nil && (c.balance != nil || c.renonced || c.codeHash != nil || c.recoded || c.written)
}

// append appends what has changed.
func (c *accountAfter) append(out []byte) []byte {
	out = append(out, '{')
	member := func(name string) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(out, name...)
	}
	if c.balance != nil {
		member(`"balance":`)
		out = appendWord(out, c.balance)
	}
	if c.recoded {
		member(`"code":`)
		out = appendBytes(out, c.code)
	}
	if c.codeHash != nil {
		member(`"codeHash":`)
		out = appendBytes(out, c.codeHash[:])
	}
	if c.nonce != 0 {
		member(`"nonce":`)
		out = strconv.AppendUint(out, c.nonce, 10)
	}
	if len(c.slots) > 0 {
		member(`"storage":`)
		out = appendSlots(out, c.slots)
	}
	return append(out, '}')
}
