package pool

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/txpool"
)

// evictionsFor returns the transactions to remove when one is added: the one that it replaces,
// if any, and as many cheaper ones as necessary, cheapest first. It does not remove them.
// The mutex is held.
func (p *Pool) evictionsFor(added, replaced *entry) (gone []*entry, err error) {
	count, bytes := len(p.byHash)+1, p.bytes+int(added.tx.Size())
	leave := func(w *entry) {
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
		if leave(c.entry); !full() {
			return gone, nil
		}
	}
	return nil, fmt.Errorf("%w: the pool is full of transactions that pay as much", txpool.ErrUnderpriced)
}

// candidate is a transaction that may be evicted.
type candidate struct {
	*entry
	// price is the maximum of its tip and those of the sender's later transactions, which
	// must be evicted first. The lowest price is evicted first.
	price *big.Int
}

// cheaper returns, in the order of eviction, the transactions that pay less than another
// and whose sender's later transactions all pay less too. It excludes the transaction that
// the other replaces and those on which it depends.
func (p *Pool) cheaper(than *entry) (all []candidate) {
	baseFee := p.head.Header.BaseFee
	offered := than.tx.EffectiveGasTipValue(baseFee)
	for address, of := range p.senders {
		var price *big.Int
		for _, w := range of.lastFirst() {
			tip := w.tx.EffectiveGasTipValue(baseFee)
			if tip.Cmp(offered) >= 0 || address == than.from && w.tx.Nonce() <= than.tx.Nonce() {
				break // it stays, and so do the transactions on which it depends
			}
			if price == nil || tip.Cmp(price) > 0 {
				price = tip
			}
			all = append(all, candidate{w, price})
		}
	}
	// A stable sort keeps each sender's transactions in descending order of nonces.
	slices.SortStableFunc(all, func(a, b candidate) int { return a.price.Cmp(b.price) })
	return all
}
