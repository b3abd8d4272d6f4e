package pool

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/txpool"
)

// fairShare is how many transactions a sender has in a full pool, unless no other sender wants the room.
const fairShare = 64

// evictionsFor returns the transactions to remove when one is added: the one that it replaces,
// if any, and as many as necessary of those that yield to it. It does not remove them.
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
	for _, c := range p.yielding(added) {
		if leave(c.entry); !full() {
			return gone, nil
		}
	}
	return nil, fmt.Errorf("%w: the pool is full of transactions that pay as much", txpool.ErrUnderpriced)
}

// candidate is a transaction that may be evicted.
type candidate struct {
	*entry
	// excess is how many transactions the sender has with this one above fairShare; 0 if it is within the share. The
	// highest excess is evicted first.
	excess int
	// price is the maximum of its tip and those of the sender's later transactions within the share, which
	// must be evicted first. The lowest price is evicted first. It means nothing above the share.
	price *big.Int
}

// yielding returns, in the order of eviction, the transactions that make room for another: first those above
// their senders' share, whatever they pay, if the other's sender is below its own; then those that pay less, and whose
// sender's later transactions all pay less too. It excludes the transaction that the other replaces and those on
// which it depends.
func (p *Pool) yielding(to *entry) (all []candidate) {
	baseFee := p.head.Header.BaseFee
	offered := to.tx.EffectiveGasTipValue(baseFee)
	own := p.senders[to.from]
	below := own == nil || len(own.byNonce) < fairShare
	for address, of := range p.senders {
		var price *big.Int
		for i, w := range of.lastFirst() {
			if address == to.from && w.tx.Nonce() <= to.tx.Nonce() {
				break
			}
			if excess := len(of.byNonce) - i - fairShare; below && excess > 0 {
				all = append(all, candidate{w, excess, offered})
				continue
			}
			tip := w.tx.EffectiveGasTipValue(baseFee)
			if tip.Cmp(offered) >= 0 {
				break // it stays, and so do the transactions on which it depends
			}
			if price == nil || tip.Cmp(price) > 0 {
				price = tip
			}
			all = append(all, candidate{w, 0, price})
		}
	}
	// A stable sort keeps each sender's transactions in descending order of nonces.
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.excess, a.excess), a.price.Cmp(b.price))
	})
	return all
}
