package pool

import (
	"container/heap"
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"
)

// Executable returns the transactions, without blobs, that a block with a base fee and gas
// limit could include, best paid first, but each sender's in the order of their nonces. The
// sum of their gas limits does not exceed gasLimit.
func (p *Pool) Executable(baseFee *big.Int, gasLimit uint64) types.Transactions {
	p.mutex.Lock()
	var heads best
	for _, of := range p.senders {
		if list := of.executable(); len(list) > 0 && pays(list[0].tx, baseFee) {
			heads = append(heads, offer{list, list[0].tx.EffectiveGasTipValue(baseFee)})
		}
	}
	p.mutex.Unlock()
	heap.Init(&heads)
	var chosen types.Transactions
	var gas uint64
	for len(heads) > 0 {
		next := heads[0].list[0].tx
		if gas+next.Gas() > gasLimit {
			heap.Pop(&heads) // the sender's later transactions depend on it
			continue
		}
		gas += next.Gas()
		chosen = append(chosen, next.WithoutBlobTxSidecar())
		if rest := heads[0].list[1:]; len(rest) > 0 && pays(rest[0].tx, baseFee) {
			heads[0] = offer{rest, rest[0].tx.EffectiveGasTipValue(baseFee)}
			heap.Fix(&heads, 0)
		} else {
			heap.Pop(&heads)
		}
	}
	return chosen
}

// pays reports whether a transaction pays the base fee.
func pays(tx *types.Transaction, baseFee *big.Int) bool {
	return baseFee == nil || tx.GasFeeCap().Cmp(baseFee) >= 0
}

// offer is the remaining transactions of a sender.
type offer struct {
	list []*entry // at least one
	tip  *big.Int // of the first
}

// best is a heap of offers, best paid first, then oldest first.
type best []offer

func (b best) Len() int      { return len(b) }
func (b best) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *best) Push(x any)   { *b = append(*b, x.(offer)) }

func (b best) Less(i, j int) bool {
	if c := b[i].tip.Cmp(b[j].tip); c != 0 {
		return c > 0
	}
	return b[i].list[0].since.Before(b[j].list[0].since)
}

func (b *best) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}
