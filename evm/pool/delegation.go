package pool

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/txpool/legacypool"
	"github.com/ethereum/go-ethereum/core/types"
)

// The code of a sender with a delegation (EIP-7702) runs when anybody calls it, and can spend the balance on
// which the sender's pending transactions depend. So such a sender has one executable transaction at most,
// and so has one whose authorization of a delegation is pending: by geth's rules and with its errors.

// checkDelegations returns an error if a transaction is not admissible because of delegations that its
// sender or others have, or may soon have. The mutex is held.
func (p *Pool) checkDelegations(of *sender, w *entry) error {
	if w.accepted {
		return nil
	}
	if err := p.checkDelegation(of, w.from, w.tx); err != nil {
		return err
	}
	return p.checkAuthorities(w.authorities)
}

// checkDelegation returns whether a sender may add a transaction if it has, or may soon have, a delegation.
// The mutex is held.
func (p *Pool) checkDelegation(of *sender, from common.Address, tx *types.Transaction) error {
	if !of.hasCode && p.authorized[from] == 0 {
		return nil
	}
	if of.run.length == 0 {
		if tx.Nonce() != of.nonce {
			return legacypool.ErrOutOfOrderTxFromDelegated
		}
		return nil
	}
	if tx.Nonce() >= of.next() {
		return txpool.ErrInflightTxLimitReached
	}
	return nil // it replaces one
}

// checkAuthorities returns an error if an account that authorizes a delegation has more pending transactions
// than it could have with one. The mutex is held.
func (p *Pool) checkAuthorities(authorities []common.Address) error {
	for _, authority := range authorities {
		if of := p.senders[authority]; of != nil && (len(of.byNonce) > 1 || of.blobs > 0) {
			return legacypool.ErrAuthorityReserved
		}
	}
	return nil
}

// hasBlobs reports whether the transaction has blobs.
func (w *entry) hasBlobs() bool { return w.tx.Type() == types.BlobTxType }

// authorize counts the authorizations of a transaction that is added. The mutex is held.
func (p *Pool) authorize(added *entry) {
	for _, authority := range added.authorities {
		p.authorized[authority]++
	}
}

// unauthorize reverses authorize. The mutex is held.
func (p *Pool) unauthorize(gone *entry) {
	for _, authority := range gone.authorities {
		if p.authorized[authority]--; p.authorized[authority] == 0 {
			delete(p.authorized, authority)
		}
	}
}
