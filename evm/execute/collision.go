package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
)

// collidingState is the state as the EVM sees it where a contract is created at
// an address that has storage already, but neither code nor nonce. Since EIP-7610,
// which holds from the first block on, that fails as it does at a contract's
// address. go-ethereum's EVM leaves it out, as mainnet has few such accounts and
// nobody can create a contract at them; other chains' genesis may have more.
//
// The EVM asks two things before it creates: the nonce and the code. So such an
// account is said to have a nonce. Other than before a creation it is asked for of
// accounts that have code, and of those that have a key, where it must be right.
type collidingState struct {
	*state.StateDB
	message *core.Message // that is run; nil before the first
}

// GetNonce implements vm.StateDB.
func (s *collidingState) GetNonce(address common.Address) uint64 {
	nonce := s.StateDB.GetNonce(address)
	if nonce == 0 && s.hasStorageAlone(address) && !s.isSigned(address) {
		return 1
	}
	return nonce
}

// hasStorageAlone says whether an account of nonce 0 had storage, but no code,
// when the block began. What is stored since then belongs to a contract that is
// just being created.
func (s *collidingState) hasStorageAlone(address common.Address) bool {
	if hash := s.GetCodeHash(address); hash != types.EmptyCodeHash {
		return false // a contract, or no account
	}
	root := s.GetStorageRoot(address)
	return root != types.EmptyRootHash && root != common.Hash{}
}

// isSigned says whether somebody has the key of an address, and signed the transaction
// with it or an authorization in it. No contract can be created there.
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
