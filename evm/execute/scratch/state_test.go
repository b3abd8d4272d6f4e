package scratch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// world is a state that a seed makes. A third of its accounts are absent, a third have code and
// storage, and some have code only.
type world struct {
	seed   uint64
	broken bool // every read fails
}

var errBroken = errors.New("broken")

// drawn returns a number that follows from the seed and parts.
func (w world) drawn(parts ...[]byte) uint64 {
	hash := crypto.Keccak256(append(parts, binary.BigEndian.AppendUint64(nil, w.seed))...)
	return binary.BigEndian.Uint64(hash)
}

func (w world) code(address common.Address) []byte {
	if n := w.drawn(address[:], []byte("code")); n%3 > 0 {
		return address[:1+n%20]
	}
	return nil
}

func (w world) Account(address common.Address) (*types.StateAccount, error) {
	if w.broken {
		return nil, errBroken
	}
	n := w.drawn(address[:])
	if n%3 == 0 {
		return nil, nil
	}
	account := types.NewEmptyStateAccount()
	if code := w.code(address); len(code) > 0 {
		account.CodeHash = crypto.Keccak256(code)
	}
	account.Nonce, account.Balance = n>>8%2, uint256.NewInt(n>>16%3)
	return account, nil
}

func (w world) Storage(address common.Address, slot common.Hash) (common.Hash, error) {
	if account, err := w.Account(address); account == nil {
		return common.Hash{}, err
	}
	return value(w.drawn(address[:], slot[:]) % 3), nil
}

func (w world) Code(address common.Address, hash common.Hash) []byte {
	if code := w.code(address); !w.broken && crypto.Keccak256Hash(code) == hash {
		return code
	}
	return nil
}

func (w world) CodeSize(address common.Address, hash common.Hash) int {
	return len(w.Code(address, hash))
}
func (w world) Has(address common.Address, hash common.Hash) bool {
	return w.CodeSize(address, hash) > 0
}

func (w world) Grow(int) bool { return true }

func value(n uint64) common.Hash { return common.Hash{31: byte(n)} }

// changed is what both states offer.
type changed interface {
	vm.StateDB
	SetBalance(address common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason)
	SetStorage(address common.Address, storage map[common.Hash]common.Hash)
}

// play makes the same random changes to a State and to go-ethereum's state, and compares all
// answers.
type play struct {
	t          *testing.T
	rng        *rand.Rand
	kinds      int // how many addresses and slots there are
	states     [2]changed
	held       []held
	snapshots  [][2]int
	operations map[string]int // how often each was done
}

// held is a balance that was returned, and what it was then.
type held struct {
	balance *uint256.Int
	value   uint256.Int
}

func (p *play) address() common.Address { return common.Address{1, 19: byte(p.rng.IntN(p.kinds))} }
func (p *play) slot() common.Hash       { return value(uint64(p.rng.IntN(p.kinds))) }
func (p *play) value() common.Hash      { return value(uint64(p.rng.IntN(3))) }
func (p *play) amount() *uint256.Int    { return uint256.NewInt(uint64(p.rng.IntN(3))) }

// both does the same to both states and compares what they return.
func (p *play) both(name string, do func(changed) any) {
	p.operations[name]++
	got, want := do(p.states[0]), do(p.states[1])
	if code, ok := got.([]byte); ok && bytes.Equal(code, want.([]byte)) {
		return // nil or empty
	}
	if got != want {
		p.t.Fatalf("operation %d, %s: got %v, want %v", p.operations[name], name, got, want)
	}
}

// change does one random change.
func (p *play) change() {
	a, k, v, amount := p.address(), p.slot(), p.value(), p.amount()
	exists := p.states[1].Exist(a)
	refund := p.states[1].GetRefund()
	nothing := func(do func(changed)) func(changed) any {
		return func(s changed) any { do(s); return nil }
	}
	switch n := p.rng.IntN(17); {
	case n == 0 && !exists:
		p.both("CreateAccount", nothing(func(s changed) { s.CreateAccount(a) }))
	case n == 1 && exists:
		p.both("CreateContract", nothing(func(s changed) { s.CreateContract(a) }))
	case n == 2:
		p.both("AddBalance", func(s changed) any { return s.AddBalance(a, amount, 0) })
	case n == 3:
		p.both("SubBalance", func(s changed) any { return s.SubBalance(a, amount, 0) })
	case n == 4:
		p.both("SetNonce", nothing(func(s changed) { s.SetNonce(a, uint64(p.kinds)%3, 0) }))
	case n == 5:
		p.both("GetCode", func(s changed) any { return s.GetCode(a) }) // the EVM reads it before it sets it
		p.both("SetCode", func(s changed) any { return s.SetCode(a, v[31:][:v[31]%2], 0) })
	case n < 9:
		p.both("SetState", func(s changed) any { return s.SetState(a, k, v) })
	case n == 9:
		p.both("SetTransientState", nothing(func(s changed) { s.SetTransientState(a, k, v) }))
	case n == 10 && p.rng.IntN(4) == 0:
		p.both("SelfDestruct", nothing(func(s changed) { s.SelfDestruct(a) }))
	case n == 11:
		p.both("AddRefund", nothing(func(s changed) { s.AddRefund(amount.Uint64()) }))
	case n == 12 && refund >= amount.Uint64():
		p.both("SubRefund", nothing(func(s changed) { s.SubRefund(amount.Uint64()) }))
	case n == 13:
		p.both("AddAddressToAccessList", nothing(func(s changed) { s.AddAddressToAccessList(a) }))
	case n == 14:
		p.both("AddSlotToAccessList", nothing(func(s changed) { s.AddSlotToAccessList(a, k) }))
	case n == 15:
		p.snapshots = append(p.snapshots, [2]int{p.states[0].Snapshot(), p.states[1].Snapshot()})
	case n == 16 && len(p.snapshots) > 0:
		p.revert(p.rng.IntN(len(p.snapshots)))
	}
}

func (p *play) revert(i int) {
	for s, id := range p.snapshots[i] {
		p.states[s].RevertToSnapshot(id)
	}
	p.snapshots = p.snapshots[:i]
	p.operations["RevertToSnapshot"]++
}

// override does one random change before the first transaction.
func (p *play) override() {
	a, k, v := p.address(), p.slot(), p.value()
	switch p.rng.IntN(5) {
	case 0:
		p.both("override nonce", func(s changed) any { s.SetNonce(a, uint64(v[31]), 0); return nil })
	case 1:
		p.both("override code", func(s changed) any { s.GetCode(a); s.SetCode(a, v[31:], 0); return nil })
	case 2:
		p.both("override balance", func(s changed) any { s.SetBalance(a, uint256.NewInt(uint64(v[31])), 0); return nil })
	case 3:
		p.both("override state", func(s changed) any { s.SetStorage(a, map[common.Hash]common.Hash{k: v}); return nil })
	case 4:
		p.both("override slot", func(s changed) any { s.SetState(a, k, v); return nil })
	}
}

// look compares one answer about an account, and a slot of it.
func (p *play) look(question int, a common.Address, k common.Hash) {
	switch question {
	case 0:
		p.both("GetState", func(s changed) any { return s.GetState(a, k) })
	case 1:
		p.both("GetStateAndCommittedState", func(s changed) any {
			now, before := s.GetStateAndCommittedState(a, k)
			return [2]common.Hash{now, before}
		})
	case 2:
		p.both("GetTransientState", func(s changed) any { return s.GetTransientState(a, k) })
	case 3:
		p.both("access list", func(s changed) any {
			address, slot := s.SlotInAccessList(a, k)
			return [3]bool{s.AddressInAccessList(a), address, slot}
		})
	case 4:
		p.both("GetBalance", func(s changed) any {
			balance := s.GetBalance(a)
			p.held = append(p.held, held{balance, *balance})
			return *balance
		})
	case 5:
		p.both("GetNonce", func(s changed) any { return s.GetNonce(a) })
	case 6:
		p.both("GetCodeHash", func(s changed) any { return s.GetCodeHash(a) })
	case 7:
		p.both("GetCode", func(s changed) any { return s.GetCode(a) })
	case 8:
		p.both("GetCodeSize", func(s changed) any { return s.GetCodeSize(a) })
	case 9:
		p.both("HasSelfDestructed", func(s changed) any { return s.HasSelfDestructed(a) })
	case 10:
		p.both("Exist, Empty", func(s changed) any { s.Touch(a); return [2]bool{s.Exist(a), s.Empty(a)} })
	case 11:
		p.both("IsNewContract", func(s changed) any { return s.IsNewContract(a) })
	case 12:
		p.both("GetRefund", func(s changed) any { return s.GetRefund() })
	}
}

const (
	accessList     = 3
	slotQuestions  = 4 // those before
	questions      = 13
	operationKinds = 32
)

// lookAtAll compares all answers, those about access lists only in a transaction.
func (p *play) lookAtAll(transaction bool) {
	for i := range p.kinds {
		a := common.Address{1, 19: byte(i)}
		for question := range questions {
			if question == accessList && !transaction {
				continue
			}
			for j := range p.kinds {
				if j == 0 || question < slotQuestions {
					p.look(question, a, value(uint64(j)))
				}
			}
		}
	}
}

// transaction runs random operations as messages do, and reverts them.
func (p *play) transaction(operations int) {
	rules := params.Rules{IsEIP2929: true, IsShanghai: p.rng.IntN(2) == 0}
	p.snapshots = [][2]int{{p.states[0].Snapshot(), p.states[1].Snapshot()}}
	sender, coinbase, to := p.address(), p.address(), p.address()
	precompiles := []common.Address{p.address(), p.address()}
	list := types.AccessList{{Address: p.address(), StorageKeys: []common.Hash{p.slot(), p.slot()}}, {Address: p.address()}}
	for _, s := range p.states {
		s.Prepare(rules, sender, coinbase, &to, precompiles, list)
	}
	before := p.snapshots[0]
	p.snapshots = nil // the changes of Prepare are only reverted at the end
	for range operations {
		p.change()
		p.look(p.rng.IntN(questions), p.address(), p.slot())
	}
	p.lookAtAll(true)
	p.snapshots = [][2]int{before}
	p.revert(0)
	for _, h := range p.held {
		if *h.balance != h.value {
			p.t.Fatalf("a balance that was returned as %d became %d", &h.value, h.balance)
		}
	}
	p.held = nil
}

func playOn(t *testing.T, w world, db state.Database, rng *rand.Rand, operations map[string]int) {
	model, err := state.NewWithReader(types.EmptyRootHash, db, w)
	if err != nil {
		t.Fatal(err)
	}
	tested := New(w)
	defer tested.Release()
	p := &play{t: t, rng: rng, kinds: 1 + rng.IntN(24), states: [2]changed{tested, model}, operations: operations}
	if rng.IntN(2) == 0 {
		for range rng.IntN(12) {
			p.override()
		}
		for _, s := range p.states {
			s.Finalise(params.Rules{})
		}
	}
	for range 1 + rng.IntN(3) { // as estimates of gas do
		p.transaction(rng.IntN(250))
	}
	p.lookAtAll(false)
}

// TestLikeStateDB compares a State with go-ethereum's StateDB. The States come from the pool, so
// each begins with what another left.
func TestLikeStateDB(t *testing.T) {
	sequences := uint64(2000)
	if testing.Short() {
		sequences = 200
	}
	operations, db := make(map[string]int), state.NewDatabaseForTesting()
	for seed := range sequences {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := world{seed: seed, broken: seed%50 == 49}
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { playOn(t, w, db, rng, operations) }) {
			return
		}
	}
	if len(operations) != operationKinds {
		t.Errorf("%d kinds of operations, want %d: %v", len(operations), operationKinds, operations)
	}
}
