package execute

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// libraryState is the state with a root in a database of go-ethereum.
type libraryState struct {
	nothing
	database state.Database
	reader   state.Reader
	root     common.Hash
	keys     map[common.Hash]common.Address // of addresses
	slots    map[common.Hash]common.Hash    // of slots
	nodes    atomic.Int64                   // that were read, by several goroutines
}

func (l *libraryState) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	return l.reader.Account(l.keys[address])
}

func (l *libraryState) Slot(_ context.Context, address, slot common.Hash) (common.Hash, error) {
	return l.reader.Storage(l.keys[address], l.slots[slot])
}

func (l *libraryState) Node(_ context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	l.nodes.Add(1)
	reader, err := l.database.TrieDB().NodeReader(l.root)
	if err != nil {
		return nil, err
	}
	return reader.Node(owner, path, hash)
}

const (
	libraryAccounts = 60
	librarySlots    = 40
)

func libraryAddress(i int) common.Address { return common.BytesToAddress([]byte{0xaa, byte(i)}) }

// newLibraryState makes a state in which some of the accounts and slots exist.
func newLibraryState(t *testing.T, r *rand.Rand) *libraryState {
	l := &libraryState{database: state.NewDatabaseForTesting(), keys: make(map[common.Hash]common.Address), slots: make(map[common.Hash]common.Hash)}
	made, err := state.New(types.EmptyRootHash, l.database)
	if err != nil {
		t.Fatal(err)
	}
	for i := range librarySlots {
		l.slots[evm.HashSlot(word(uint64(i)))] = word(uint64(i))
	}
	for i := range libraryAccounts {
		address := libraryAddress(i)
		l.keys[evm.HashAddress(address)] = address
		if r.IntN(3) == 0 {
			continue
		}
		made.SetBalance(address, uint256.NewInt(1+r.Uint64N(1000)), tracing.BalanceChangeUnspecified)
		for slot := range r.IntN(2) * r.IntN(librarySlots) {
			made.SetState(address, word(uint64(slot)), word(1+r.Uint64N(5)))
		}
	}
	if l.root, err = made.Commit(params.Rules{IsCancun: true, IsEIP158: true}, 0); err != nil {
		t.Fatal(err)
	}
	if l.reader, err = l.database.Reader(l.root); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSimulatedRoots: whatever a simulation does to a state, its roots are those that
// go-ethereum's tries have, after each block and each transaction, and fewer nodes are read.
func TestSimulatedRoots(t *testing.T) {
	for name, rules := range map[string]params.Rules{
		"Frontier": {}, "Byzantium": {IsEIP158: true, IsByzantium: true},
		"Cancun":    {IsEIP158: true, IsByzantium: true, IsCancun: true},
		"Amsterdam": {IsEIP158: true, IsByzantium: true, IsCancun: true, IsAmsterdam: true},
	} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(name, ", seed ", seed), func(t *testing.T) { compareSimulated(t, rules, seed) })
		}
	}
}

func compareSimulated(t *testing.T, rules params.Rules, seed uint64) {
	l := newLibraryState(t, rand.New(rand.NewPCG(seed, 1)))
	var states [3]*state.StateDB
	var databases [len(states)]*stateDatabase
	var read [len(states)]int64
	for i := range states {
		db := newDatabase(t.Context(), Parent{State: l}, false)
		if i > 0 {
			db.tries = newSimulatedTries(db, i == 2)
			defer db.tries.roots.Borrow()()
		}
		statedb, err := state.New(l.root, db)
		if err != nil {
			t.Fatal(err)
		}
		states[i], databases[i] = statedb, db
	}
	for round := range 60 {
		var roots [len(states)]common.Hash
		for i, statedb := range states {
			before := l.nodes.Load()
			r := rand.New(rand.NewPCG(seed, uint64(100+round))) // the same changes in both
			for range 1 + r.IntN(6) {
				changeAtRandom(r, statedb)
			}
			statedb.Finalise(rules)
			if r.IntN(2) == 0 {
				roots[i] = statedb.IntermediateRoot(rules)
			}
			if err := errors.Join(statedb.Error(), databases[i].failure()); err != nil {
				t.Fatal(err)
			}
			read[i] += l.nodes.Load() - before
		}
		if roots[1] != roots[0] || roots[2] != roots[0] {
			t.Fatalf("round %d: the roots are %x and, side by side, %x, want %x", round, roots[1], roots[2], roots[0])
		}
		compareStorageRoots(t, states[:])
	}
	if 5*read[1] > 4*read[0] || 5*read[2] > 4*read[0] {
		t.Errorf("%d and %d nodes were read, want at most four fifths of the %d that go-ethereum's tries read", read[1], read[2], read[0])
	}
}

// compareStorageRoots: which storage is empty decides whether a contract can be created.
func compareStorageRoots(t *testing.T, states []*state.StateDB) {
	for i := range libraryAccounts {
		want := states[0].GetStorageRoot(libraryAddress(i))
		for _, statedb := range states[1:] {
			if got := statedb.GetStorageRoot(libraryAddress(i)); got != want {
				t.Fatalf("the storage root of account %d is %x, want %x", i, got, want)
			}
		}
	}
}

// changeAtRandom changes an account.
func changeAtRandom(r *rand.Rand, statedb *state.StateDB) {
	address, slot := libraryAddress(r.IntN(libraryAccounts)), word(r.Uint64N(librarySlots))
	switch r.IntN(8) {
	case 0:
		statedb.SetNonce(address, r.Uint64N(5), tracing.NonceChangeUnspecified)
	case 1:
		statedb.SetBalance(address, uint256.NewInt(r.Uint64N(3)), tracing.BalanceChangeUnspecified)
	case 2:
		statedb.SetCode(address, []byte{byte(r.IntN(3))}, tracing.CodeChangeUnspecified)
	case 3:
		statedb.SelfDestruct(address)
	case 4:
		statedb.SetStorage(address, map[common.Hash]common.Hash{slot: word(1 + r.Uint64N(4))})
	default:
		if statedb.GetBalance(address).IsZero() { // an empty account with storage would be deleted
			statedb.SetBalance(address, uint256.NewInt(1), tracing.BalanceChangeUnspecified)
		}
		statedb.SetState(address, slot, word(r.Uint64N(4)))
	}
}

// TestSimulationWithoutNodes: a node that cannot be read is a failure, not another root.
func TestSimulationWithoutNodes(t *testing.T) {
	l := newLibraryState(t, rand.New(rand.NewPCG(1, 1)))
	missing := &missingNodes{libraryState: l}
	db := newDatabase(t.Context(), Parent{State: missing}, false)
	db.tries = newSimulatedTries(db, false)
	statedb, err := state.New(l.root, db)
	if err != nil {
		t.Fatal(err)
	}
	for i := range libraryAccounts {
		statedb.SetNonce(libraryAddress(i), 7, tracing.NonceChangeUnspecified)
	}
	statedb.IntermediateRoot(params.Rules{IsCancun: true, IsEIP158: true})
	if db.failure() == nil {
		t.Error("nothing failed")
	}
}

// TestSimulationOfMalformedNodes: storage nodes that cannot be decoded are a failure, not another root.
func TestSimulationOfMalformedNodes(t *testing.T) {
	for _, sideBySide := range []bool{false, true} {
		l := newLibraryState(t, rand.New(rand.NewPCG(1, 1)))
		db := newDatabase(t.Context(), Parent{State: &malformedStorage{l}}, false)
		db.tries = newSimulatedTries(db, sideBySide)
		statedb, err := state.New(l.root, db)
		if err != nil {
			t.Fatal(err)
		}
		for i := range libraryAccounts {
			statedb.SetState(libraryAddress(i), word(1), word(1<<40))
		}
		statedb.IntermediateRoot(params.Rules{IsCancun: true, IsEIP158: true})
		if db.failure() == nil {
			t.Errorf("side by side %t: nothing failed", sideBySide)
		}
	}
}

// malformedStorage is a state whose storage nodes are not RLP.
type malformedStorage struct{ *libraryState }

func (m malformedStorage) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	if owner != (common.Hash{}) {
		return []byte{0xff}, nil
	}
	return m.libraryState.Node(ctx, owner, path, hash)
}

// missingNodes is a state without trie nodes.
type missingNodes struct{ *libraryState }

func (missingNodes) Node(context.Context, common.Hash, []byte, common.Hash) ([]byte, error) {
	return nil, errDisk
}
