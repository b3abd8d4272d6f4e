package pool

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/core/types"
)

// Subscription is a queue of the transactions that entered the pool since Subscribe. A slow
// subscriber misses transactions; it does not slow down the pool.
type Subscription struct {
	pool    *Pool
	log     *slog.Logger
	arrived chan *types.Transaction
	missed  atomic.Int64 // transactions since the last warning
}

// subscriptionQueue is the length of a subscription's queue. A transaction that enters the
// pool while it is full is missed.
const subscriptionQueue = 1024

// Subscribe starts a subscription. It gets every transaction that enters the pool from now on,
// before Follow is called too. Follow ends it, and logs how many transactions the subscriber missed.
func (p *Pool) Subscribe(log *slog.Logger) *Subscription {
	s := &Subscription{pool: p, log: log, arrived: make(chan *types.Transaction, subscriptionQueue)}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.subscriptions[s] = struct{}{}
	return s
}

// Follow calls notify with every transaction of the subscription, without its blobs, until ctx
// is done or notify returns an error. That ends the subscription. It is called once.
func (s *Subscription) Follow(ctx context.Context, notify func(*types.Transaction) error) error {
	defer func() {
		s.pool.mutex.Lock()
		defer s.pool.mutex.Unlock()
		delete(s.pool.subscriptions, s)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tx := <-s.arrived:
			if err := notify(tx.WithoutBlobTxSidecar()); err != nil {
				return err
			}
		}
		if len(s.arrived) == 0 { // once for each time that the queue was full
			if missed := s.missed.Swap(0); missed > 0 {
				s.log.Warn("subscribers were not notified of pending transactions, which came too fast", "transactions", missed)
			}
		}
	}
}

// notify adds a transaction to the queues of all subscriptions. The mutex is held.
func (p *Pool) notify(tx *types.Transaction) {
	for s := range p.subscriptions {
		select {
		case s.arrived <- tx:
		default:
			s.missed.Add(1)
		}
	}
}
