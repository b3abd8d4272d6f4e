package pool

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/core/types"
)

// keepReturning notes transactions of dropped blocks, in the order of their inclusion. If there are more than the pool
// may hold, the oldest are dropped. The mutex is held.
func (p *Pool) keepReturning(returned types.Transactions) {
	for _, tx := range returned {
		if tx.Type() != types.BlobTxType { // blocks do not contain blobs
			p.returning = append(p.returning, tx)
		}
	}
	p.returning = p.returning[max(0, len(p.returning)-p.limits.Transactions):]
}

// addReturning adds the transactions of dropped blocks. Those whose sender could not be read stay for the next Reset.
func (p *Pool) addReturning(ctx context.Context) {
	p.mutex.Lock()
	returning := p.returning
	p.returning = nil
	p.mutex.Unlock()
	var left types.Transactions
	for _, tx := range returning {
		err := p.Add(ctx, tx) // may fail: the new branch may include it
		var unread *StateError
		if err != nil && ctx.Err() != nil || errors.As(err, &unread) {
			left = append(left, tx)
		}
	}
	p.mutex.Lock()
	p.returning = append(left, p.returning...)
	p.mutex.Unlock()
}
