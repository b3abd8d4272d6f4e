package pool

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/txpool"
)

// fairShare is how many transactions a sender keeps in a full pool, unless they pay less than others. What it has above
// that makes room for senders that have less.
const fairShare = 64

// evictionsFor returns the transactions to remove when one of a sender is added: the one that it replaces,
// if any, and as many as necessary of those that yield to it. It does not remove them.
// The mutex is held.
func (p *Pool) evictionsFor(of *sender, added, replaced *entry) (gone []*entry, err error) {
	count, bytes := len(p.byHash)+1, p.bytes+int(added.tx.Size())
	leave := func(w *entry) {
		gone = append(gone, w)
		count, bytes = count-1, bytes-int(w.tx.Size())
	}
	full := func() bool { return count > p.limits.Transactions || bytes > p.limits.Bytes }
	if replaced != nil {
		leave(replaced)
	}
	var above *entry
	if count > p.limits.Transactions && p.isEntitled(of, added) {
		if above = p.aboveShare(); above != nil {
			leave(above)
		}
	}
	if !full() {
		return gone, nil
	}
	for _, c := range p.cheaper(added) {
		if c.entry == above {
			continue
		}
		if leave(c.entry); !full() {
			return gone, nil
		}
	}
	return nil, fmt.Errorf("%w: the pool is full of transactions that pay as much", txpool.ErrUnderpriced)
}

// isEntitled reports whether a transaction of a sender below its share may take the room of one above a share, whatever
// that pays: the next block could include it.
func (p *Pool) isEntitled(of *sender, added *entry) bool {
	return len(of.byNonce) < fairShare && added.tx.Nonce() <= of.next() &&
		added.tx.EffectiveGasTipValue(p.head.Header.BaseFee).Sign() >= 0
}

// aboveShare returns the last transaction of the sender that has most, nil if no sender has more than its share.
func (p *Pool) aboveShare() (last *entry) {
	most := fairShare
	for _, of := range p.senders {
		if len(of.byNonce) > most {
			most, last = len(of.byNonce), of.lastFirst()[0]
		}
	}
	return last
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
