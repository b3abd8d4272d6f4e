package execute

import (
	"bytes"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
)

// dropUnchanged removes from an update the accounts and slots whose values are the same
// after the block as before. StateDB lists everything that was touched, such as an
// account that was called, or a slot whose account was destroyed and created again.
func dropUnchanged(update *state.StateUpdate) {
	for address, origin := range update.AccountsOrigin {
		key := evm.HashAddress(address)
		slots := update.Storages[key]
		if update.StorageKeyType == state.StorageKeyHashed { // else no storage is ever wiped
			for slot, before := range update.StoragesOrigin[address] {
				if after, listed := slots[slot]; listed && after == before {
					delete(slots, slot)
				}
			}
		}
		if len(slots) == 0 && sameButRoot(update.Accounts[key], origin) {
			delete(update.Accounts, key)
			delete(update.Storages, key)
		}
	}
}

// sameButRoot compares accounts with equal storage. The storage root may not be known yet.
func sameButRoot(a, b *types.StateAccount) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Nonce == b.Nonce && a.Balance.Eq(b.Balance) && bytes.Equal(a.CodeHash, b.CodeHash)
}
