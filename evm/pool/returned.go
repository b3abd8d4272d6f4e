package pool

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// keepReturning notes transactions of dropped blocks, each once. They are kept in the order of their nonces: a later
// call may bring older blocks. If there are more than the pool may hold, the last are dropped, because the others do not
// wait for them. The mutex is held.
func (p *Pool) keepReturning(returned types.Transactions) {
	known := make(map[common.Hash]bool)
	all := slices.DeleteFunc(slices.Concat(p.returning, returned), func(tx *types.Transaction) bool {
		hash := tx.Hash()
		unwanted := known[hash] || tx.Type() == types.BlobTxType // blocks do not contain blobs
		known[hash] = true
		return unwanted
	})
	slices.SortStableFunc(all, func(a, b *types.Transaction) int { return cmp.Compare(a.Nonce(), b.Nonce()) })
	count, bytes := 0, 0
	for ; count < min(len(all), p.limits.Transactions); count++ {
		if bytes += int(all[count].Size()); bytes > p.limits.Bytes {
			break
		}
	}
	p.returning = slices.Clone(all[:count]) // without the memory of the others
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
		if errors.As(err, &unread) {
			left = append(left, tx)
		}
	}
	p.mutex.Lock()
	p.keepReturning(left)
	p.mutex.Unlock()
}
