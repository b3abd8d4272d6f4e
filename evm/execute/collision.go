package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// collidingState makes the creation of a contract fail at an address that has storage,
// but neither code nor nonce, as EIP-7610 demands from the first block on. go-ethereum's
// EVM does not check this: mainnet has few such accounts, and no contract can be created
// at them. The genesis of another chain may have more.
//
// Before a creation the EVM reads the nonce and the code of the address, so such an
// account gets a nonce. Otherwise the EVM reads nonces only of accounts with code and of
// signers, which keep theirs.
type collidingState struct {
	warmState
	message *core.Message // the current one; nil before the first

	// recorder, if any, is told what the EVM does before and after calls.
	recorder *traceRecorder
	// changes, if any, is told what may change.
	changes *changeRecorder
}

// Snapshot implements vm.StateDB.
func (s *collidingState) Snapshot() int {
	s.recorder.remove()
	return s.warmState.Snapshot()
}

// RevertToSnapshot implements vm.StateDB.
func (s *collidingState) RevertToSnapshot(id int) {
	s.recorder.set()
	s.warmState.RevertToSnapshot(id)
}

// AddressInAccessList implements vm.StateDB. The EVM asks it before CALL and the like.
func (s *collidingState) AddressInAccessList(address common.Address) bool {
	s.recorder.set()
	return s.warmState.AddressInAccessList(address)
}

// GetBalance implements vm.StateDB. The EVM asks it before CREATE2 and SELFDESTRUCT.
func (s *collidingState) GetBalance(address common.Address) *uint256.Int {
	s.recorder.set()
	return s.StateDB.GetBalance(address)
}

// GetNonce implements vm.StateDB. The EVM asks it before CREATE.
func (s *collidingState) GetNonce(address common.Address) uint64 {
	s.recorder.set()
	nonce := s.StateDB.GetNonce(address)
	if nonce == 0 && s.hasStorageAlone(address) && !s.isSigned(address) {
		return 1
	}
	return nonce
}

// hasStorageAlone reports whether an account of nonce 0 had storage, but no code, when
// the block began. Storage written since then belongs to a contract that is being created.
func (s *collidingState) hasStorageAlone(address common.Address) bool {
	if hash := s.GetCodeHash(address); hash != types.EmptyCodeHash {
		return false // a contract, or no account
	}
	return isStored(s.GetStorageRoot(address))
}

// isStored reports whether a storage root is that of a storage with slots. That of no account is zero.
func isStored(root common.Hash) bool { return root != types.EmptyRootHash && root != common.Hash{} }

// isSigned reports whether the key of an address signed the transaction or one of its
// authorizations. No contract can be created at such an address.
func (s *collidingState) isSigned(address common.Address) bool {
	if s.message == nil {
		return false
	}
	if address == s.message.From {
		return true
	}
	for _, authorization := range s.message.SetCodeAuthorizations {
		if authority, err := authorization.Authority(); err == nil && authority == address {
			return true
		}
	}
	return false
}
