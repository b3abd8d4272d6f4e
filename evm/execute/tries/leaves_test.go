package tries_test

import (
	"math/rand/v2"
	"testing"

	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// TestKnownLeavesAreNotRead: a leaf whose value is known is not read, but for one whose parent has
// all children. The nodes above it are, and those that must move when another one is removed.
func TestKnownLeavesAreNotRead(t *testing.T) {
	leaves := func(w *world, reads map[place]bool) (count int) {
		for at := range reads {
			if items, _, err := rlp.SplitList(w.nodes.stored[at]); err != nil {
				t.Fatal(err)
			} else if n, err := rlp.CountValues(items); err != nil {
				t.Fatal(err)
			} else if compact, _, err := rlp.SplitString(items); n == 2 && err == nil && compact[0]&0x20 != 0 {
				count++
			}
		}
		return count
	}
	r := rand.New(rand.NewPCG(1, 1))
	w, kept := newWorld(t), tries.New(0)
	some := func(count int) changes {
		c := changes{make(map[common.Hash]*types.StateAccount), make(map[common.Hash]map[common.Hash]common.Hash)}
		for i := range count {
			address := crypto.Keccak256Hash([]byte{byte(i)})
			c.accounts[address] = types.NewEmptyStateAccount()
			c.accounts[address].Nonce = r.Uint64()
			c.slots[address] = map[common.Hash]common.Hash{crypto.Keccak256Hash([]byte{1}): {byte(r.Uint32()), 1}, crypto.Keccak256Hash([]byte{2}): {byte(r.Uint32()), 2}}
		}
		return c
	}
	w.apply(kept, some(100))
	for name, before := range map[string]tries.Before{"known": w.known, "not known": nil} {
		c, read := some(50), make(map[place]bool)
		kept.Begin(w.root, func(owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
			read[place{owner, string(path)}] = true
			return w.nodes.Node(owner, path, hash)
		}, before)
		for address, slots := range c.slots {
			root, err := kept.StorageRoot(address)
			w.must(err)
			w.must(err)
			w.must(kept.SetSlots(address, root, slots))
		}
		_, _, err := kept.Commit(c.accounts)
		w.must(err)
		got := leaves(w, read)
		if before != nil && (got > 0 || len(read) < 50) || before == nil && got != 150 {
			t.Errorf("%s: %d of the %d nodes that were read are leaves", name, got, len(read))
		}
		kept = tries.New(0)
	}
}
