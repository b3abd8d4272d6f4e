package pool

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"
)

// watcher is told of transactions that come in.
type watcher struct{ arrived chan *types.Transaction }

// watchedAhead is how many transactions wait for a watcher before it misses some.
const watchedAhead = 1024

// Watch calls told with every transaction that comes in, without its blobs, until
// ctx is done or told returns an error. A watcher that is slower than what comes in
// misses some: nobody waits for it.
func (p *Pool) Watch(ctx context.Context, told func(*types.Transaction) error) error {
	w := &watcher{arrived: make(chan *types.Transaction, watchedAhead)}
	p.mutex.Lock()
	p.watchers[w] = struct{}{}
	p.mutex.Unlock()
	defer func() {
		p.mutex.Lock()
		delete(p.watchers, w)
		p.mutex.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tx := <-w.arrived:
			if err := told(tx.WithoutBlobTxSidecar()); err != nil {
				return err
			}
		}
	}
}

// tell tells the watchers of a transaction. The mutex is held.
func (p *Pool) tell(tx *types.Transaction) {
	for w := range p.watchers {
		select {
		case w.arrived <- tx:
		default:
		}
	}
}
