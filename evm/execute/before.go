package execute

import (
	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// valuesBefore are the values that a block has read and then replaced, as its parent's tries have
// them. Their keys are hashed only when a value is asked for, which is rare while tries keep their
// nodes. It belongs to one goroutine.
type valuesBefore struct {
	update    *state.StateUpdate
	addresses map[common.Hash]common.Address              // nil until one is needed
	slots     map[common.Hash]map[common.Hash]common.Hash // by the hash of the address
}

// of implements [tries.Before]. The storage root of an account may be a placeholder; then the
// value is not that of the trie.
func (v *valuesBefore) of(owner, key common.Hash) []byte {
	if v.addresses == nil {
		v.addresses = make(map[common.Hash]common.Address, len(v.update.AccountsOrigin))
		for address := range v.update.AccountsOrigin {
			v.addresses[evm.HashAddress(address)] = address
		}
	}
	if owner == (common.Hash{}) {
		return encodeAccount(v.update.AccountsOrigin[v.addresses[key]])
	}
	slots, ok := v.slots[owner]
	if !ok {
		if v.slots == nil {
			v.slots = make(map[common.Hash]map[common.Hash]common.Hash)
		}
		slots = v.hashed(v.update.StoragesOrigin[v.addresses[owner]])
		v.slots[owner] = slots
	}
	return encodeSlot(slots[key])
}

// hashed returns slots by the hashes of their keys.
func (v *valuesBefore) hashed(slots map[common.Hash]common.Hash) map[common.Hash]common.Hash {
	if v.update.StorageKeyType == state.StorageKeyHashed {
		return slots
	}
	hashed := make(map[common.Hash]common.Hash, len(slots))
	for slot, value := range slots {
		hashed[evm.HashSlot(slot)] = value
	}
	return hashed
}

// encodeAccount returns an account as the account trie has it; nil if there is none.
func encodeAccount(account *types.StateAccount) []byte {
	if account == nil {
		return nil
	}
	encoded, err := rlp.EncodeToBytes(account)
	if err != nil {
		return nil // cannot happen: an account is always encoded
	}
	return encoded
}

// encodeSlot returns the value of a slot as a storage trie has it; nil if it is zero.
func encodeSlot(value common.Hash) []byte {
	if value == (common.Hash{}) {
		return nil
	}
	encoded, err := rlp.EncodeToBytes(common.TrimLeftZeroes(value[:]))
	if err != nil {
		return nil // cannot happen: bytes are always encoded
	}
	return encoded
}
