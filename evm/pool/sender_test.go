package pool

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// inOrder returns transactions of one sender that can be added in their order.
func (b *bench) inOrder(who, count int) types.Transactions {
	b.t.Helper()
	var all types.Transactions
	for nonce := range count {
		all = append(all, b.transfer(who, uint64(nonce), 2, 1))
	}
	return all
}

// BenchmarkOneSender adds as many transactions of one sender as may wait. Their signatures were checked before.
func BenchmarkOneSender(b *testing.B) {
	made := newBench(b, DefaultLimits())
	txs := made.inOrder(0, DefaultLimits().Executable)
	for b.Loop() {
		made.pool = New(made.config, DefaultLimits())
		made.head(nil)
		for _, tx := range txs {
			made.add(tx)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(txs)), "ns/tx")
}

// Adding the next transaction of a sender allocates as much after many as after few: it does not visit the others.
func TestNextNonceVisitsNoOthers(t *testing.T) {
	b := newBench(t, DefaultLimits())
	txs := b.inOrder(0, DefaultLimits().Executable)
	perAdd := func(count int) float64 {
		return testing.AllocsPerRun(count-1, func() { // and once before
			b.add(txs[0])
			txs = txs[1:]
		})
	}
	few := perAdd(64)
	for range 800 {
		b.add(txs[0])
		txs = txs[1:]
	}
	if many := perAdd(64); many > few+8 { // a map grows now and then
		t.Errorf("%.0f allocations for one after 864 others, %.0f after at most 63", many, few)
	}
}

// A sender that can pay for a replacement need not be able to pay for the transaction that it replaces besides.
func TestReplacementNeedsItsOwnCostOnly(t *testing.T) {
	b := newBench(t, DefaultLimits())
	next, replacement := b.transfer(0, 1, 2, 1), b.transfer(0, 0, 3, 2)
	all := new(big.Int).Add(next.Cost(), replacement.Cost()).Int64()
	for balance, refused := range map[int64]bool{all: false, all - 1: true} {
		b.pool = New(b.config, DefaultLimits())
		b.fund(0, 0, balance)
		b.head(nil)
		b.add(b.transfer(0, 0, 2, 1))
		b.add(next)
		if refused {
			b.refuse(replacement, "insufficient funds")
		} else {
			b.add(replacement)
		}
	}
}

// The sums that a sender keeps are those of its executable transactions, whatever is added, replaced, evicted and included.
func TestSenderSums(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			limits := DefaultLimits()
			limits.Transactions = 40
			b := newBench(t, limits)
			nonces := make([]uint64, len(b.keys))
			for range 1500 {
				who := random.IntN(len(b.keys))
				switch random.IntN(10) {
				case 0:
					nonces[who] += random.Uint64N(3)
					b.fund(who, nonces[who], int64(random.IntN(1e15)))
					b.head(nil)
				case 1:
					for hash := range b.pool.byHash {
						b.pool.Remove(hash)
						break
					}
				default:
					_ = b.pool.Add(t.Context(), b.transfer(who, nonces[who]+random.Uint64N(9), int64(2+random.IntN(9)), int64(1+random.IntN(4)))) // some are refused
				}
				for _, of := range b.pool.senders {
					of.checkSums(t)
				}
			}
		})
	}
}

// The same with blobs.
func TestSenderSumsWithBlobs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	s := newSender()
	for range 2000 {
		nonce := s.nonce + random.Uint64N(9)
		switch old := s.byNonce[nonce]; {
		case random.IntN(50) == 0:
			s.nonce++
			s.run = run{}
			s.extend()
			if old := s.byNonce[s.nonce-1]; old != nil {
				s.remove(old)
			}
		case old != nil:
			s.remove(old)
		case random.IntN(3) == 0:
			s.insert(&entry{tx: types.NewTx(&types.BlobTx{Nonce: nonce, Gas: 1, GasFeeCap: uint256.NewInt(random.Uint64N(9)), BlobFeeCap: new(uint256.Int)})})
		default:
			s.insert(&entry{tx: types.NewTx(&types.DynamicFeeTx{Nonce: nonce, Gas: 1, GasFeeCap: big.NewInt(random.Int64N(9))})})
		}
		s.checkSums(t)
	}
}

// checkSums compares what the sender keeps with what it is the sum of.
func (s *sender) checkSums(t *testing.T) {
	t.Helper()
	all, want := 0, new(run)
	for w := s.byNonce[s.nonce]; w != nil; w = s.byNonce[s.nonce+uint64(want.length)] {
		want.add(w, 1)
	}
	for _, w := range s.byNonce {
		if w.hasBlobs() {
			all++
		}
	}
	if got := &s.run; got.length != want.length || got.blobs != want.blobs || got.cost.Cmp(&want.cost) != 0 || s.blobs != all {
		t.Fatalf("%d executable, %d with blobs, for %d; %d with blobs of all; expected %d, %d, for %d; %d", got.length, got.blobs, &got.cost, s.blobs, want.length, want.blobs, &want.cost, all)
	}
}
