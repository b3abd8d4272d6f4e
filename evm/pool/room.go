package pool

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/txpool"
)

// roomFor chooses what has to go so that a transaction can wait: the one that it
// takes the place of, if there is one, and as many of those that pay less as it
// takes, those that pay least first. None goes yet. The mutex is held.
func (p *Pool) roomFor(added, replaced *waiting) (gone []*waiting, err error) {
	count, bytes := len(p.byHash)+1, p.bytes+int(added.tx.Size())
	leave := func(w *waiting) {
		gone = append(gone, w)
		count, bytes = count-1, bytes-int(w.tx.Size())
	}
	full := func() bool { return count > p.limits.Transactions || bytes > p.limits.Bytes }
	if replaced != nil {
		leave(replaced)
	}
	if !full() {
		return gone, nil
	}
	for _, c := range p.cheaper(added) {
		if leave(c.waiting); !full() {
			return gone, nil
		}
	}
	return nil, fmt.Errorf("%w: the pool is full of transactions that pay as much", txpool.ErrUnderpriced)
}

// candidate is a transaction that may go.
type candidate struct {
	*waiting
	// price is the most that it or one that waits behind it pays: those go first.
	price *big.Int
}

// cheaper are the transactions that pay less than another, as does all that waits
// behind them, in the order in which they may go. Those that the other waits behind
// itself, or takes the place of, are not among them.
func (p *Pool) cheaper(than *waiting) (all []candidate) {
	baseFee := p.head.Header.BaseFee
	offered := than.tx.EffectiveGasTipValue(baseFee)
	for address, of := range p.senders {
		var price *big.Int
		for _, w := range of.lastFirst() {
			tip := w.tx.EffectiveGasTipValue(baseFee)
			if tip.Cmp(offered) >= 0 || address == than.from && w.tx.Nonce() <= than.tx.Nonce() {
				break // it stays, and so does what it waits behind
			}
			if price == nil || tip.Cmp(price) > 0 {
				price = tip
			}
			all = append(all, candidate{w, price})
		}
	}
	// A stable order leaves each sender's the last first.
	slices.SortStableFunc(all, func(a, b candidate) int { return a.price.Cmp(b.price) })
	return all
}
