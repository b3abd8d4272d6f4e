package pool

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// sender is an account with pending transactions, as of the head.
type sender struct {
	nonce   uint64
	balance *big.Int
	hasCode bool // only a delegation (EIP-7702) gives code to an account that can send
	byNonce map[uint64]*entry
	blobs   int // transactions in byNonce with blobs
	run     run
}

func newSender() *sender { return &sender{byNonce: make(map[uint64]*entry)} }

// StateError means that the state of a sender could not be read. It says nothing about the transaction.
type StateError struct{ Err error }

func (e *StateError) Error() string { return "read the sender's account: " + e.Err.Error() }

// Unwrap returns why the state could not be read.
func (e *StateError) Unwrap() error { return e.Err }

// read reads the account from a state. An error is a [StateError].
func (s *sender) read(ctx context.Context, state evm.State, address common.Address) error {
	account, err := state.Account(ctx, evm.AccountKey(state, address))
	if err != nil {
		return &StateError{err}
	}
	s.nonce, s.balance, s.hasCode = 0, new(big.Int), false
	if account != nil {
		s.nonce, s.balance = account.Nonce, account.Balance.ToBig()
		s.hasCode = !bytes.Equal(account.CodeHash, types.EmptyCodeHash[:])
	}
	s.run = run{}
	s.extend()
	return nil
}

// aheadReads is how many accounts are read from other nodes at once.
const aheadReads = 8

// readAhead reads accounts of a state that other nodes have, which keeps what it has read, so
// that nothing waits for these nodes while the mutex is held.
func readAhead(ctx context.Context, state evm.State, addresses ...common.Address) error {
	if _, remote := state.(evm.Named); !remote {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(aheadReads)
	for _, address := range addresses {
		group.Go(func() error { return newSender().read(ctx, state, address) })
	}
	return group.Wait()
}

// affordable returns whether the sender can pay for a transaction. Only then are signatures of
// authorizations verified.
func (p *Pool) affordable(ctx context.Context, w *entry) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	of, err := p.sender(ctx, w.from)
	if err != nil {
		return err
	}
	return of.affords(w)
}

// affords returns whether a transaction can follow those that were included, whether its kind can be added, and
// whether the sender can pay for it besides the executable ones. As in geth, transactions that wait for an
// earlier nonce are not counted: one that was sent with a wrong nonce would block all others.
func (s *sender) affords(w *entry) error {
	tx := w.tx
	if tx.Nonce() < s.nonce {
		return fmt.Errorf("%w: next nonce %d, tx nonce %d", core.ErrNonceTooLow, s.nonce, tx.Nonce())
	}
	cost := tx.Cost()
	if s.balance.Cmp(cost) < 0 {
		return fmt.Errorf("%w: balance %d, tx cost %d, overshot %d", core.ErrInsufficientFunds, s.balance, cost, new(big.Int).Sub(cost, s.balance))
	}
	if !w.accepted && s.isReserved(w) {
		return txpool.ErrAlreadyReserved
	}
	all := new(big.Int).Add(cost, &s.run.cost)
	if s.isExecutable(tx.Nonce()) {
		all.Sub(all, s.byNonce[tx.Nonce()].tx.Cost()) // it is replaced
	}
	if s.balance.Cmp(all) < 0 {
		return fmt.Errorf("%w: balance %d, queued cost %d, tx cost %d, overshot %d", core.ErrInsufficientFunds,
			s.balance, new(big.Int).Sub(all, cost), cost, new(big.Int).Sub(all, s.balance))
	}
	return nil
}

// isReserved reports whether the sender has transactions of the other kind than w: with blobs if w has none, or the
// reverse. Nodes keep the two kinds in pools of their own, and only one of these has transactions of an account.
// As in geth, a replacement keeps the kind, and blobs behind a gap reserve nothing.
func (s *sender) isReserved(w *entry) bool {
	switch same := s.byNonce[w.tx.Nonce()]; {
	case same != nil:
		return same.hasBlobs() != w.hasBlobs()
	case w.hasBlobs():
		return s.blobs < len(s.byNonce)
	}
	return s.run.blobs > 0
}

// place returns which transaction one replaces, or an error if it cannot replace that one, or if there are too
// many of its kind, executable or waiting for an earlier nonce.
func (s *sender) place(tx *types.Transaction, most Limits) (replaced *entry, err error) {
	replaced = s.byNonce[tx.Nonce()]
	if replaced != nil && !outbids(tx, replaced.tx) {
		return nil, txpool.ErrReplaceUnderpriced
	}
	if replaced != nil || len(s.byNonce) < min(most.Executable, most.Waiting) {
		return replaced, nil
	}
	pooled, limit := len(s.byNonce)-s.run.length, most.Waiting
	if tx.Nonce() == s.next() {
		pooled, limit = s.run.length, most.Executable
	}
	if pooled >= limit {
		return nil, fmt.Errorf("%w: pooled %d txs", txpool.ErrAccountLimitExceeded, pooled)
	}
	return nil, nil
}

// outbids reports whether tx pays enough to replace other.
func outbids(tx, other *types.Transaction) bool {
	percent := int64(bumpPercent)
	if tx.Type() == types.BlobTxType || other.Type() == types.BlobTxType {
		if tx.Type() != other.Type() {
			return false // a node may have accepted one kind at a head that is not known here yet
		}
		percent = blobBumpPercent
	}
	enough := func(price, before *big.Int) bool {
		least := new(big.Int).Mul(before, big.NewInt(100+percent))
		least.Quo(least, big.NewInt(100)) // rounded down, as geth does
		return price.Cmp(least) >= 0 && price.Cmp(before) > 0
	}
	if !enough(tx.GasFeeCap(), other.GasFeeCap()) || !enough(tx.GasTipCap(), other.GasTipCap()) {
		return false
	}
	return tx.Type() != types.BlobTxType || enough(tx.BlobGasFeeCap(), other.BlobGasFeeCap())
}

// lastFirst returns all transactions in descending order of nonces.
func (s *sender) lastFirst() []*entry {
	return slices.SortedFunc(maps.Values(s.byNonce), func(a, b *entry) int { return cmp.Compare(b.tx.Nonce(), a.tx.Nonce()) })
}

func (s *sender) content() (c Content) {
	for _, w := range s.executable() {
		c.Pending = append(c.Pending, w.tx.WithoutBlobTxSidecar())
	}
	for _, w := range s.byNonce {
		if w.tx.Nonce() >= s.next() {
			c.Queued = append(c.Queued, w.tx.WithoutBlobTxSidecar())
		}
	}
	return c
}
