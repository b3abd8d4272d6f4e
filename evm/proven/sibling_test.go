package proven

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

const removable = 300 // accounts and slots

var few = common.HexToAddress("0xfe") // a contract with a few slots

// newRemovable returns a chain whose genesis has accounts, of which two have slots. Removing the last
// of the few leaves an extension alone:
//
//	branch
//	  1: extension 2 3 -> branch
//	                        4: leaf
//	                        5: leaf
//	  7: leaf
func newRemovable(t *testing.T) (c *testChain, ofFew []common.Hash) {
	t.Helper()
	search := newPreimages(common.HashLength)
	storage, small := make(map[common.Hash]common.Hash), make(map[common.Hash]common.Hash)
	for _, prefix := range [][]byte{{1, 2, 3, 4}, {1, 2, 3, 5}, {7}} {
		slot, err := search.find(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		ofFew = append(ofFew, common.BytesToHash(slot))
		small[common.BytesToHash(slot)] = common.Hash{2}
	}
	return newTestChain(t, 0, func(alloc types.GenesisAlloc) {
		for i := range removable {
			alloc[numbered(i)] = types.Account{Balance: big.NewInt(1)}
			storage[common.BytesToHash(numbered(i).Bytes())] = common.Hash{1}
		}
		alloc[counter] = types.Account{Code: counterCode, Storage: storage, Balance: new(big.Int)}
		alloc[few] = types.Account{Code: counterCode, Storage: small, Balance: new(big.Int)}
	}), ofFew
}

func numbered(i int) common.Address {
	return common.BytesToAddress(binary.BigEndian.AppendUint16([]byte{0xdd}, uint16(i)))
}

// removals are what TestRemovals counts.
type removals struct {
	chain *testChain
	known *Remote        // of the removal before
	kinds map[string]int // of the nodes that were not named
}

// TestRemovals: a root without an account or a slot is that of the whole trie without it, although
// what is beside it was not named.
func TestRemovals(t *testing.T) {
	c, ofFew := newRemovable(t)
	r := &removals{chain: c, kinds: make(map[string]int)}
	for i := range removable {
		r.removeAccount(t, numbered(i))
		r.removeSlot(t, counter, common.BytesToHash(numbered(i).Bytes()))
	}
	for _, slot := range ofFew {
		r.removeSlot(t, few, slot)
	}
	if r.kinds["leaf"] == 0 || r.kinds["extension"] == 0 || r.kinds["branch"] == 0 {
		t.Errorf("nodes that were not named: %v, want some of each kind", r.kinds)
	}
}

// begin returns nodes, and the state over them, of which nothing is known.
func (r *removals) begin(t *testing.T) (*testNodes, *State) {
	nodes := newTestNodes(r.chain.node("a"))
	f := follow(t, nodes, 1)
	if r.known != nil {
		f.remote.addresses, f.remote.slots = r.known.addresses, r.known.slots // so that each search is made once
	}
	r.known = f.remote
	return nodes, f.state(r.chain.blocks[0])
}

func (r *removals) removeAccount(t *testing.T, address common.Address) {
	t.Helper()
	nodes, state := r.begin(t)
	key := evm.AccountKey(state, address)
	if found, err := state.Account(t.Context(), key); err != nil || found == nil {
		t.Fatalf("account %x: %v, %v", address, found, err)
	}
	r.remove(t, nodes, state, trie.StateTrieID(r.chain.blocks[0].Root()), key)
}

func (r *removals) removeSlot(t *testing.T, address common.Address, slot common.Hash) {
	t.Helper()
	nodes, state := r.begin(t)
	owner, key := evm.AccountKey(state, address), evm.SlotKey(state, slot)
	if value, err := state.Slot(t.Context(), owner, key); err != nil || value == (common.Hash{}) {
		t.Fatalf("slot %x of %x: %x, %v", slot, address, value, err)
	}
	contract, err := state.Account(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	r.remove(t, nodes, state, trie.StorageTrieID(r.chain.blocks[0].Root(), owner, contract.Root), key)
}

// remove compares the roots without a key.
func (r *removals) remove(t *testing.T, nodes *testNodes, state *State, id *trie.ID, key common.Hash) {
	t.Helper()
	nodes.count("eth_getProof")
	opened := tries.NewRoots(func(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
		blob, err := state.Node(t.Context(), owner, path, hash)
		if nodes.count("eth_getProof") > 0 {
			r.kinds[kindOf(t, blob)]++
		}
		return blob, err
	}, nil).Open(id.Owner, id.Root)
	err := opened.Remove(key)
	got, hashErr := opened.Hash()
	whole, openErr := trie.New(id, r.chain.state)
	if err := errors.Join(err, hashErr, openErr); err != nil {
		t.Fatal(err)
	}
	whole.MustDelete(key[:])
	if want := whole.Hash(); got != want {
		t.Errorf("the root of %x without %x is %x, want %x", id.Owner, key, got, want)
	}
}

func kindOf(t *testing.T, blob []byte) string {
	t.Helper()
	items, _, err := rlp.SplitList(blob)
	if err != nil {
		t.Fatal(err)
	}
	if count, err := rlp.CountValues(items); err != nil || count == 17 {
		return "branch"
	}
	if key, _, err := rlp.SplitString(items); err == nil && key[0]&0x20 != 0 {
		return "leaf"
	}
	return "extension"
}

// A node that is deeper than a search reaches, or that is not there, is refused.
func TestUnnamedNodes(t *testing.T) {
	c, _ := newRemovable(t)
	nodes := newTestNodes(c.node("a"))
	state := follow(t, nodes, 1).state(c.blocks[0])
	for _, e := range []struct {
		depth, proofs int
	}{{prefixNibbles + 1, 0}, {evm.KeyNibbles, 0}, {2, 1}} {
		t.Run(fmt.Sprint("depth ", e.depth), func(t *testing.T) {
			_, err := state.Node(t.Context(), common.Hash{}, make([]byte, e.depth), common.Hash{9})
			if got := nodes.count("eth_getProof"); !errors.Is(err, evm.ErrUnnamed) || got != e.proofs {
				t.Errorf("%v after %d proofs, want %d", err, got, e.proofs)
			}
		})
	}
	if _, err := state.Node(t.Context(), common.Hash{7}, []byte{1}, common.Hash{9}); !errors.Is(err, evm.ErrUnnamed) {
		t.Errorf("a node of an account that is not named: %v", err)
	}
}
