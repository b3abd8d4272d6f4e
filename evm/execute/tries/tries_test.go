package tries_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// Any changes lead to the roots and the changed nodes of go-ethereum's tries, with memory for
// all nodes, for some, and for none; and with right, wrong and no values before.
func TestChangesAreThoseOfTheLibrary(t *testing.T) {
	for _, limit := range []int{1 << 30, 5000, 0} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			for seed := range uint64(90) {
				r := rand.New(rand.NewPCG(seed, 1))
				w, kept := newWorld(t), tries.New(limit)
				switch seed % 3 {
				case 1:
					w.before = w.known
				case 2:
					w.before = func(owner, key common.Hash) []byte { // some are of other keys
						value := w.known(owner, key)
						if r.IntN(2) == 0 {
							key[r.IntN(len(key))] ^= 1
							value = w.known(owner, key)
						}
						return value
					}
				}
				for range 40 {
					w.apply(kept, randomChanges(r, w))
				}
				if t.Failed() {
					t.Fatal("seed ", seed)
				}
			}
		})
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(uint64(1), 3000)
	f.Fuzz(func(t *testing.T, seed uint64, limit int) {
		r := rand.New(rand.NewPCG(seed, 2))
		w, kept := newWorld(t), tries.New(limit)
		if seed%2 == 0 {
			w.before = w.known
		}
		for range 30 {
			w.apply(kept, randomChanges(r, w))
		}
	})
}

// A node that was read or written is not read again, as long as there is memory for it.
func TestNodesAreKept(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	w, kept := newWorld(t), tries.New(1<<30)
	for range 20 {
		w.apply(kept, randomChanges(r, w))
	}
	for name, c := range map[string]struct {
		kept  *tries.Tries
		reads bool
	}{"the same": {kept, false}, "new ones": {tries.New(1 << 30), true}} {
		touched := make(map[common.Hash]*types.StateAccount)
		address := slices.MinFunc(slices.Collect(maps.Keys(w.accounts)), common.Hash.Cmp)
		touched[address] = &types.StateAccount{Nonce: uint64(100 + len(name)), Balance: new(uint256.Int), Root: w.accounts[address], CodeHash: types.EmptyCodeHash[:]}
		before := w.nodes.reads
		c.kept.Begin(w.root, w.nodes.Node, nil)
		if _, _, err := c.kept.Commit(touched); err != nil {
			t.Fatal(err)
		}
		if read := w.nodes.reads > before; read != c.reads {
			t.Errorf("%s: nodes were read: %v, expected %v", name, read, c.reads)
		}
	}
}

// Nodes that no longer fit into memory decoded stay there encoded, and are not read again.
func TestEvictedNodesAreKeptEncoded(t *testing.T) {
	const accounts, block = 30_000, 3_000
	const memory = 36 << 20 // a third for decoded nodes; all of them take some 20 MiB
	r := rand.New(rand.NewPCG(2, 2))
	w, kept := newWorld(t), tries.New(memory)
	w.before = w.known
	for first := 0; first < 3*accounts; first += block {
		c := changes{accounts: make(map[common.Hash]*types.StateAccount)}
		for i := range block {
			address := crypto.Keccak256Hash(binary.BigEndian.AppendUint32(nil, uint32((first+i)%accounts)))
			c.accounts[address] = types.NewEmptyStateAccount()
			c.accounts[address].Nonce = r.Uint64()
		}
		root, _, want := w.reference(c)
		w.nodes.reads = 0
		got, _, changed := w.change(kept, c)
		if got != root || len(changed) != len(want) {
			t.Fatalf("the state root is %x with %d nodes, expected %x with %d", got, len(changed), root, len(want))
		}
		if w.nodes.reads > 0 {
			t.Fatalf("%d nodes were read again from account %d on", w.nodes.reads, first)
		}
		for _, n := range changed {
			w.nodes.stored[place{n.Owner, n.Path}] = n.Blob
		}
		w.root = root
		w.note(c)
	}
}

// Slots that were set, and never committed, are forgotten.
func TestUncommittedIsForgotten(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	w, kept := newWorld(t), tries.New(1<<30)
	for range 20 {
		w.apply(kept, randomChanges(r, w))
	}
	for address, root := range w.accounts {
		kept.Begin(w.root, w.nodes.Node, nil)
		w.must(kept.SetSlots(address, root, map[common.Hash]common.Hash{{1, 2, 3}: {4}}))
		w.apply(kept, randomChanges(r, w))
		account := types.NewEmptyStateAccount()
		slots := map[common.Hash]common.Hash{{5, 6, 7}: {8}}
		w.apply(kept, changes{map[common.Hash]*types.StateAccount{address: account}, map[common.Hash]map[common.Hash]common.Hash{address: slots}})
		return
	}
	t.Fatal("there is no account")
}

// Changes that could not be completed are forgotten, whichever node cannot be read.
func TestFailureIsForgotten(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w, kept := newWorld(t), tries.New(1<<30)
	for range 20 {
		w.apply(kept, randomChanges(r, w))
	}
	accounts := make(map[common.Hash]*types.StateAccount)
	for address, root := range w.accounts {
		accounts[address] = &types.StateAccount{Nonce: 77, Balance: new(uint256.Int), Root: root, CodeHash: types.EmptyCodeHash[:]}
	}
	failures := 0
	for failed := true; failed; {
		kept = tries.New(1 << 30)
		left := failures
		kept.Begin(w.root, func(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
			if left == 0 {
				return nil, fmt.Errorf("no disk")
			}
			left--
			return w.nodes.Node(owner, path, hash)
		}, nil)
		_, _, err := kept.Commit(accounts)
		if failed = err != nil; failed {
			failures++
			w.apply(kept, randomChanges(r, w))
		}
	}
	if failures < 5 {
		t.Errorf("%d nodes were read, want 5 or more", failures)
	}
}
