package pool

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"
)

// subscriber is a subscription to new transactions.
type subscriber struct{ arrived chan *types.Transaction }

// subscriberQueue is the length of a subscriber's queue. If it is full, transactions are dropped.
const subscriberQueue = 1024

// Subscribe calls notify with every new transaction, without its blobs, until ctx is done or notify
// returns an error. A slow subscriber misses transactions; it does not slow down the pool.
func (p *Pool) Subscribe(ctx context.Context, notify func(*types.Transaction) error) error {
	w := &subscriber{arrived: make(chan *types.Transaction, subscriberQueue)}
	p.mutex.Lock()
	p.subscribers[w] = struct{}{}
	p.mutex.Unlock()
	defer func() {
		p.mutex.Lock()
		delete(p.subscribers, w)
		p.mutex.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tx := <-w.arrived:
			if err := notify(tx.WithoutBlobTxSidecar()); err != nil {
				return err
			}
		}
	}
}

// notify notifies the subscribers of a transaction. The mutex is held.
func (p *Pool) notify(tx *types.Transaction) {
	for w := range p.subscribers {
		select {
		case w.arrived <- tx:
		default:
		}
	}
}
