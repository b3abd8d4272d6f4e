package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
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
	*state.StateDB
	message *core.Message // the current one; nil before the first
}

// GetNonce implements vm.StateDB.
func (s *collidingState) GetNonce(address common.Address) uint64 {
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
	root := s.GetStorageRoot(address)
	return root != types.EmptyRootHash && root != common.Hash{}
}

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
