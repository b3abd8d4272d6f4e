package fakenode

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// RefusedData is the input of transactions that the node rejects.
const RefusedData = "refuse me"

// ErrRefused is the error for such transactions.
var ErrRefused = errors.New("transaction rejected by the node")

// Wait adds a transaction to the node's pool and announces it.
func (n *Node) Wait(tx *types.Transaction) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, tx)
	for s := range n.pools {
		s.notify(tx.WithoutBlobTxSidecar())
	}
}

// Waiting returns the transactions in the node's pool, oldest first.
func (n *Node) Waiting() []*types.Transaction {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*types.Transaction(nil), n.waiting...)
}

// SendRawTransaction accepts all transactions except for those with RefusedData, and those that
// wait already.
func (a *ethAPI) SendRawTransaction(raw hexutil.Bytes) (common.Hash, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return common.Hash{}, err
	}
	if string(tx.Data()) == RefusedData {
		return common.Hash{}, ErrRefused
	}
	if slices.ContainsFunc(a.n.Waiting(), func(waiting *types.Transaction) bool { return waiting.Hash() == tx.Hash() }) {
		return common.Hash{}, errors.New("already known") // as geth says
	}
	a.n.Wait(tx)
	return tx.Hash(), nil
}

// NewPendingTransactions serves a subscription until the client or the connection ends it.
func (a *subscribableAPI) NewPendingTransactions(ctx context.Context, whole bool) (*rpc.Subscription, error) {
	if !whole {
		return nil, errors.New("only full transactions are announced")
	}
	return a.n.serve(ctx, a.n.pools)
}

// poolAPI implements the namespace txpool.
type poolAPI struct{ n *Node }

// Content returns all transactions as pending.
func (a *poolAPI) Content() (map[string]map[common.Address]map[string]*types.Transaction, error) {
	pending := make(map[common.Address]map[string]*types.Transaction)
	for _, tx := range a.n.Waiting() {
		sender, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
		if err != nil {
			return nil, err
		}
		if pending[sender] == nil {
			pending[sender] = make(map[string]*types.Transaction)
		}
		pending[sender][fmt.Sprint(tx.Nonce())] = tx.WithoutBlobTxSidecar()
	}
	return map[string]map[common.Address]map[string]*types.Transaction{"pending": pending, "queued": {}}, nil
}
