package execute

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// The keys that random steps change.
const (
	steppedAccounts = 8
	steppedSlots    = 4
)

// TestRecordedChanges compares what is recorded of random blocks with all accounts and slots after each step. Accounts are
// created, destroyed and created anew, emptied, and delegated, and some of it is reverted.
func TestRecordedChanges(t *testing.T) {
	for name, rules := range map[string]params.Rules{
		"Shanghai": {IsEIP158: true, IsByzantium: true},
		"Cancun":   {IsEIP158: true, IsByzantium: true, IsCancun: true},
	} {
		t.Run(name, func(t *testing.T) {
			const blocks = 400
			said := 0
			library := newLibraryState(t, rand.New(rand.NewPCG(1, 3)))
			for seed := range uint64(blocks) {
				if checkRecordedBlock(t, library, rules, seed) {
					said++
				}
			}
			if said < blocks/3 || said == blocks {
				t.Errorf("the changes of %d blocks can be said, expected a third or more, but not of all %d", said, blocks)
			}
		})
	}
}

// checkRecordedBlock checks one block, and reports whether its changes can be said.
func checkRecordedBlock(t *testing.T, library *libraryState, rules params.Rules, seed uint64) bool {
	t.Helper()
	recorded, read := steppedState(t, library), steppedState(t, library) // reading all of a state changes what it holds
	recorder := newChangeRecorder(recorded.StateDB)
	recorded.changes = recorder
	values := []steppedValues{valuesOf(read.StateDB)}
	r := rand.New(rand.NewPCG(seed, 5))
	steps := 1 + r.IntN(6)
	for step := range steps {
		operations := r.Uint64()
		for _, s := range []*collidingState{recorded, read} {
			randomStep{rand.New(rand.NewPCG(operations, 9)), s, rules}.run(3)
			s.StateDB.Finalise(rules)
		}
		recorder.end(step)
		values = append(values, valuesOf(read.StateDB))
	}
	changes := recorder.recorded(steps - 1)
	if changes == nil {
		return false
	}
	accounts, slots := 0, 0
	for i := range steppedAccounts {
		address := evm.HashAddress(libraryAddress(i))
		got := slices.DeleteFunc(slices.Clone(changes.Accounts), func(k evm.AccountChanges) bool { return k.Address != address })
		accounts += len(got)
		checkRecordedKey(t, seed, got, func(k evm.AccountChanges) evm.KeyChanges[evm.Account] { return k.KeyChanges },
			values, func(v *steppedValues) evm.Account { return v.accounts[i] })
		for j := range steppedSlots {
			slot := evm.HashSlot(word(uint64(j)))
			got := slices.DeleteFunc(slices.Clone(changes.Slots), func(k evm.SlotChanges) bool { return k.Address != address || k.Slot != slot })
			slots += len(got)
			checkRecordedKey(t, seed, got, func(k evm.SlotChanges) evm.KeyChanges[common.Hash] { return k.KeyChanges },
				values, func(v *steppedValues) common.Hash { return v.slots[i][j] })
		}
	}
	if accounts != len(changes.Accounts) || slots != len(changes.Slots) {
		t.Errorf("block %d: %d accounts and %d slots have changed, expected %d and %d", seed, len(changes.Accounts), len(changes.Slots), accounts, slots)
	}
	return true
}

// checkRecordedKey compares what is recorded of a key with its values before the block and after each step.
func checkRecordedKey[K any, V comparable](t *testing.T, seed uint64, recorded []K, of func(K) evm.KeyChanges[V], values []steppedValues, value func(*steppedValues) V) {
	t.Helper()
	var want, got evm.KeyChanges[V]
	first := value(&values[0])
	last := first
	for step := range values[1:] {
		if now := value(&values[step+1]); now != last {
			want.Values, last = append(want.Values, evm.Step[V]{Step: step, Value: now}), now
		}
	}
	want.Back = want.Values != nil && first == last
	if len(recorded) > 0 {
		got = of(recorded[0])
	}
	if len(recorded) > 1 || got.Back != want.Back || !slices.Equal(got.Values, want.Values) {
		t.Errorf("block %d: recorded is %+v, %d times, expected %+v", seed, got, len(recorded), want)
	}
}

func steppedState(t *testing.T, library *libraryState) *collidingState {
	t.Helper()
	statedb, err := state.New(library.root, newDatabase(t.Context(), Parent{State: library}, true))
	if err != nil {
		t.Fatal(err)
	}
	return &collidingState{warmState: warmState{StateDB: statedb, warm: newWarmList()}}
}

// steppedValues are all accounts and slots that random steps change.
type steppedValues struct {
	accounts [steppedAccounts]evm.Account
	slots    [steppedAccounts][steppedSlots]common.Hash
}

func valuesOf(s *state.StateDB) (v steppedValues) {
	for i := range steppedAccounts {
		a := libraryAddress(i)
		if s.Exist(a) {
			v.accounts[i] = evm.Account{
				Exists: true, HasStorage: isStored(s.GetStorageRoot(a)), Nonce: s.GetNonce(a), Balance: *s.GetBalance(a), CodeHash: s.GetCodeHash(a),
			}
		}
		for j := range steppedSlots {
			v.slots[i][j] = s.GetState(a, word(uint64(j)))
		}
	}
	return v
}

// randomStep does to a state what the EVM may do in a transaction.
type randomStep struct {
	*rand.Rand
	state *collidingState
	rules params.Rules
}

func (r randomStep) address() common.Address { return libraryAddress(r.IntN(steppedAccounts)) }

func (r randomStep) run(depth int) {
	for range r.IntN(5) {
		s, a := r.state, r.address()
		switch r.IntN(9) {
		case 0:
			r.transfer(r.address(), a, r.Uint64N(3))
		case 1:
			s.SubBalance(a, s.StateDB.GetBalance(a).Clone(), tracing.BalanceChangeUnspecified)
		case 2:
			s.AddBalance(a, uint256.NewInt(r.Uint64N(2)), tracing.BalanceChangeUnspecified)
		case 3, 4:
			r.create(a, depth)
		case 5:
			if s.Exist(a) && (!r.rules.IsCancun || s.IsNewContract(a)) {
				s.SubBalance(a, s.StateDB.GetBalance(a).Clone(), tracing.BalanceChangeUnspecified)
				s.SelfDestruct(a)
			}
		case 6:
			s.SetNonce(a, s.StateDB.GetNonce(a)+r.Uint64N(2), tracing.NonceChangeUnspecified)
			delegation := [][]byte{nil, {0xef, 1, 0, 1}, {0xef, 1, 0, 2}}[r.IntN(3)]
			s.SetCode(a, delegation, tracing.CodeChangeUnspecified)
		case 7:
			r.inner(depth)
		default:
			r.store(a)
		}
	}
}

// inner runs a call, half of which are reverted.
func (r randomStep) inner(depth int) {
	if depth == 0 {
		return
	}
	snapshot := r.state.Snapshot()
	r.run(depth - 1)
	if r.IntN(2) == 0 {
		r.state.RevertToSnapshot(snapshot)
	}
}

func (r randomStep) store(a common.Address) {
	if r.state.Exist(a) && !r.state.Empty(a) {
		r.state.SetState(a, word(r.Uint64N(steppedSlots)), word(r.Uint64N(3)))
	}
}

func (r randomStep) transfer(from, to common.Address, most uint64) {
	amount := uint256.NewInt(most)
	if balance := r.state.StateDB.GetBalance(from); balance.Lt(amount) {
		amount = balance.Clone()
	}
	if !r.state.Exist(to) {
		if amount.IsZero() {
			return
		}
		r.state.CreateAccount(to)
	}
	r.state.SubBalance(from, amount, tracing.BalanceChangeUnspecified)
	r.state.AddBalance(to, amount, tracing.BalanceChangeUnspecified)
}

// create creates a contract, which may get no code. A quarter is reverted.
func (r randomStep) create(a common.Address, depth int) {
	s := r.state
	if s.StateDB.GetNonce(a) != 0 || s.GetCodeSize(a) > 0 || s.hasStorageAlone(a) {
		return
	}
	snapshot := s.Snapshot()
	if !s.Exist(a) {
		s.CreateAccount(a)
	}
	s.CreateContract(a)
	s.SetNonce(a, 1, tracing.NonceChangeUnspecified)
	r.store(a)
	r.inner(depth)
	if r.IntN(2) == 0 {
		s.SetCode(a, []byte{byte(r.IntN(3))}, tracing.CodeChangeUnspecified)
	}
	if r.IntN(4) == 0 {
		s.RevertToSnapshot(snapshot)
	}
}
