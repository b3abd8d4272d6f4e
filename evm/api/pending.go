package api

import (
	"context"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// pendingTransaction is a transaction that has come into the pool.
type pendingTransaction struct {
	hash common.Hash
	tx   *types.Transaction
}

// append appends the whole transaction.
func (p *pendingTransaction) append(out []byte, signer types.Signer) ([]byte, error) {
	sender, err := types.Sender(signer, p.tx)
	if err != nil {
		return out, err
	}
	return appendPooled(out, sender, p.tx)
}

// followPool tells of every transaction that comes into the pool.
func (a *announcer) followPool(ctx context.Context) error {
	signer := a.signer()
	err := a.api.chain.Pool().Watch(ctx, func(tx *types.Transaction) error {
		return a.announcePending(&pendingTransaction{tx.Hash(), tx}, signer)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// announcePending tells everyone of a transaction, filters first.
func (a *announcer) announcePending(p *pendingTransaction, signer types.Signer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.filters > 0 {
		a.arrived.Append(p, common.HashLength+int(p.tx.Size()))
	}
	if len(a.hashes) > 0 {
		a.hashes.tell(appendHex(nil, p.hash[:]))
	}
	if len(a.whole) > 0 {
		encoded, err := p.append(nil, signer)
		if err != nil {
			return err
		}
		a.whole.tell(encoded)
	}
	return nil
}

// signer knows the senders of transactions of any kind.
func (a *announcer) signer() types.Signer {
	return types.LatestSigner(a.api.chain.Executor().Config())
}

// subscribePending begins a subscription to newPendingTransactions. Where the network
// has no pool it stays silent.
func (a *announcer) subscribePending(ctx context.Context, params []byte) (id string, err error) {
	args := readArguments(params, 2, 1)
	whole := args.given(1) && args.bool(1)
	if args.err != nil {
		return "", args.err
	}
	to := a.hashes
	if whole {
		to = a.whole
	}
	return a.subscribe(ctx, to.add, to.remove)
}

// newPendingFilter answers eth_newPendingTransactionFilter.
func (a *announcer) newPendingFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := readArguments(params, 1, 0)
	filter := &polledFilter{kind: polledHashes}
	if args.given(0) && args.bool(0) {
		filter.kind = polledTransactions
	}
	if args.err != nil {
		return out, args.err
	}
	return a.install(ctx, filter, out)
}

// appendArrived appends what has become pending since a filter was last read. What does
// not fit is left for the next call.
func (a *announcer) appendArrived(f *polledFilter, room jsonrpc.Room, out []byte) ([]byte, error) {
	arrived, _, ok := a.arrived.Since(f.place)
	if !ok {
		return out, errFilterNotFound
	}
	signer := a.signer()
	list := polledList{out: append(out, '['), room: room}
	for _, one := range arrived {
		before := list
		entry, err := list.next(), error(nil)
		if f.kind == polledHashes {
			entry = appendHex(entry, one.hash[:])
		} else if entry, err = one.append(entry, signer); err != nil {
			return out, err
		}
		if err := list.add(entry); err != nil {
			return before.end(err)
		}
		f.place++
	}
	return list.end(nil)
}
