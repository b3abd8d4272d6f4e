package api

import (
	"context"

	"ashlar/evm/pool"
	"ashlar/feed"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// pendingTransaction is a transaction that entered the pool.
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

// arriving returns the subscription to the pool, or nil without one. The first call starts it,
// so that a client that subscribes before Run follows the pool misses nothing.
func (p *publisher) arriving() *pool.Subscription {
	p.subscribing.Do(func() {
		if waiting := p.api.chain.Pool(); waiting != nil {
			p.arrivals = waiting.Subscribe(p.api.config.Log)
		}
	})
	return p.arrivals
}

// followPool publishes every transaction that enters the pool.
func (p *publisher) followPool(ctx context.Context) error {
	signer := p.signer()
	err := p.arriving().Follow(ctx, func(tx *types.Transaction) error {
		return p.publishPending(&pendingTransaction{tx.Hash(), tx}, signer)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// publishPending publishes a transaction, to filters first.
func (p *publisher) publishPending(pending *pendingTransaction, signer types.Signer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filters > 0 {
		p.pending.Append(pending, common.HashLength+int(pending.tx.Size()))
	}
	if len(p.pendingHashes) > 0 {
		p.pendingHashes.notify(appendHex(nil, pending.hash[:]))
	}
	if len(p.pendingTransactions) > 0 {
		encoded, err := pending.append(nil, signer)
		if err != nil {
			return err
		}
		p.pendingTransactions.notify(encoded)
	}
	return nil
}

// signer returns a signer for transactions of any type.
func (p *publisher) signer() types.Signer {
	return types.LatestSigner(p.api.chain.Executor().Config())
}

// subscribePending starts a subscription to newPendingTransactions. Without a pool there
// are no notifications.
func (p *publisher) subscribePending(ctx context.Context, params []byte) (id string, err error) {
	args := parameter.Read(params, 2, 1)
	whole := args.Given(1) && args.Bool(1)
	if args.Err != nil {
		return "", args.Err
	}
	p.arriving()
	to := p.pendingHashes
	if whole {
		to = p.pendingTransactions
	}
	return p.subscribe(ctx, to.add, to.remove)
}

// newPendingFilter answers eth_newPendingTransactionFilter.
func (p *publisher) newPendingFilter(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 0)
	filter := &polledFilter{kind: polledHashes}
	if args.Given(0) && args.Bool(0) {
		filter.kind = polledTransactions
	}
	if args.Err != nil {
		return out, args.Err
	}
	p.arriving()
	return p.install(ctx, filter, out)
}

// appendPending appends the transactions that became pending since a filter was last
// read. Those that do not fit are left for the next call.
func (p *publisher) appendPending(f *polledFilter, room jsonrpc.Room, out []byte) ([]byte, error) {
	pending, _, ok := p.pending.Since(f.position)
	if !ok {
		return out, feed.ErrFilterNotFound
	}
	signer := p.signer()
	list := jsonrpc.NewList(append(out, '['), room)
	for _, one := range pending {
		before := list
		entry, err := list.Next(), error(nil)
		if f.kind == polledHashes {
			entry = appendHex(entry, one.hash[:])
		} else if entry, err = one.append(entry, signer); err != nil {
			return out, err
		}
		if err := list.Add(entry); err != nil {
			return before.End(err)
		}
		f.position++
	}
	return list.End(nil)
}
