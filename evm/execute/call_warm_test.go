package execute

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// TestWarm touches addresses and slots, takes snapshots and goes back to them, at
// random, and compares what is warm with what go-ethereum's state says.
func TestWarm(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		// few of each stay in a list that is searched, more do not
		kinds := 2 + rng.IntN(60)
		address := func() common.Address { return common.Address{19: byte(rng.IntN(kinds))} }
		slot := func() common.Hash { return word(uint64(rng.IntN(kinds))) }

		tested := newWarmState(t)
		model := newWarmState(t).StateDB
		list := types.AccessList{{Address: address(), StorageKeys: []common.Hash{slot(), slot()}}, {Address: address()}}
		from, to, coinbase := address(), address(), address()
		precompiles := []common.Address{address(), address()}
		for round := range 2 { // the second transaction knows nothing of the first
			rules := params.Rules{IsEIP2929: true, IsShanghai: round == 0}
			tested.Prepare(rules, from, coinbase, &to, precompiles, list)
			model.Prepare(rules, from, coinbase, &to, precompiles, list)
			var snapshots []int
			for range 300 {
				a, s := address(), slot()
				switch n := rng.IntN(20); {
				case n < 4:
					tested.AddAddressToAccessList(a)
					model.AddAddressToAccessList(a)
				case n < 12:
					tested.AddSlotToAccessList(a, s)
					model.AddSlotToAccessList(a, s)
				case n < 16:
					snapshot := tested.Snapshot()
					if other := model.Snapshot(); other != snapshot {
						t.Fatalf("snapshots %d and %d", snapshot, other)
					}
					snapshots = append(snapshots, snapshot)
				case n == 16 && len(snapshots) > 0:
					back := rng.IntN(len(snapshots))
					tested.RevertToSnapshot(snapshots[back])
					model.RevertToSnapshot(snapshots[back])
					snapshots = snapshots[:back]
				}
				if got, want := tested.AddressInAccessList(a), model.AddressInAccessList(a); got != want {
					t.Fatalf("seed %d: address %x is warm: %v, want %v", seed, a, got, want)
				}
				gotAddress, got := tested.SlotInAccessList(a, s)
				wantAddress, want := model.SlotInAccessList(a, s)
				if got != want || gotAddress != wantAddress {
					t.Fatalf("seed %d: slot %x of %x is warm: %v, %v, want %v, %v", seed, s, a, gotAddress, got, wantAddress, want)
				}
			}
		}
	}
}

// A list that is kept knows nothing of the call that had it before.
func TestWarmListIsReset(t *testing.T) {
	for _, touched := range []int{1, fewMembers, 1000} {
		w := new(warmList)
		w.precompiles = []common.Address{{1}}
		for i := range touched {
			w.mark(i)
			w.addAddress(common.Address{2, byte(i), byte(i >> 8)})
			w.slots.add(warmSlot{common.Address{3}, word(uint64(i))})
		}
		w.reset()
		for i := range touched {
			if w.hasAddress(common.Address{2, byte(i), byte(i >> 8)}) || w.slots.has(warmSlot{common.Address{3}, word(uint64(i))}) {
				t.Fatalf("%d of %d is warm yet", i, touched)
			}
		}
		if w.hasAddress(common.Address{1}) || len(w.marks) > 0 {
			t.Errorf("after %d: %d marks, or the precompiles, are left", touched, len(w.marks))
		}
	}
}

func newWarmState(t *testing.T) *warmState {
	t.Helper()
	s := &warmState{warm: new(warmList)}
	db := newDatabase(t.Context(), Parent{State: newWorld()}, true)
	var err error
	if s.StateDB, err = state.NewWithReader(types.EmptyRootHash, db, newCallReader(db, new(memoryMeter))); err != nil {
		t.Fatal(err)
	}
	return s
}

// Against a naive model, with sizes on both sides of fewMembers.
func TestLifoSetModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var set lifoSet[int]
		var model []int
		for range 200 {
			if random.IntN(20) == 0 {
				n := random.IntN(len(model) + 1)
				set.truncate(n)
				model = model[:n]
			}
			k := random.IntN(40)
			if set.has(k) != slices.Contains(model, k) {
				t.Fatalf("%v has %d: %t", model, k, set.has(k))
			}
			set.add(k)
			if !slices.Contains(model, k) {
				model = append(model, k)
			}
			if !slices.Equal(set.members, model) {
				t.Fatalf("the members are %v, expected %v", set.members, model)
			}
		}
	}
}
