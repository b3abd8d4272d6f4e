package execute

import (
	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// simulatedTrie is the trie that StateDB gets while it simulates blocks, whose roots are wanted and
// whose nodes are not. It belongs to one goroutine.
type simulatedTrie struct {
	flatTrie // what StateDB does not call
	trie     *tries.Trie
	failed   *readFailure
}

func (d *stateDatabase) simulatedTrie(owner, root common.Hash) *simulatedTrie {
	return &simulatedTrie{trie: tries.Open(owner, root, d.nodes().Node, d.seen.before), failed: &d.readFailure}
}

// UpdateStorage implements state.Trie.
func (t *simulatedTrie) UpdateStorage(_ common.Address, slot, value []byte) error {
	encoded, err := rlp.EncodeToBytes(value)
	if err != nil {
		return err
	}
	return t.trie.Put(evm.HashSlot(common.BytesToHash(slot)), encoded)
}

// DeleteStorage implements state.Trie.
func (t *simulatedTrie) DeleteStorage(_ common.Address, slot []byte) error {
	return t.trie.Remove(evm.HashSlot(common.BytesToHash(slot)))
}

// UpdateAccount implements state.Trie.
func (t *simulatedTrie) UpdateAccount(address common.Address, account *types.StateAccount, _ int) error {
	encoded, err := rlp.EncodeToBytes(account)
	if err != nil {
		return err
	}
	return t.trie.Put(evm.HashAddress(address), encoded)
}

// DeleteAccount implements state.Trie.
func (t *simulatedTrie) DeleteAccount(address common.Address) error {
	return t.trie.Remove(evm.HashAddress(address))
}

// Hash implements state.Trie.
func (t *simulatedTrie) Hash() common.Hash {
	root, err := t.trie.Hash()
	if err != nil {
		t.failed.fail(err)
	}
	return root
}

// seenValues are the accounts and slots that a simulation has read of the state before it. They
// belong to one goroutine while they grow.
type seenValues struct {
	accounts map[common.Hash]*types.StateAccount // nil: there is none
	slots    map[slotPlace]common.Hash
}

// slotPlace names a slot by the hashes of its address and its key.
type slotPlace struct{ address, slot common.Hash }

func newSeenValues() *seenValues {
	return &seenValues{accounts: make(map[common.Hash]*types.StateAccount), slots: make(map[slotPlace]common.Hash)}
}

// before implements [tries.Before].
func (s *seenValues) before(owner, key common.Hash) []byte {
	if owner == (common.Hash{}) {
		return encodeAccount(s.accounts[key])
	}
	return encodeSlot(s.slots[slotPlace{owner, key}])
}
