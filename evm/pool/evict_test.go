package pool

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Cheaper transactions are evicted only if that makes enough space.
func TestEvictions(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.transfer(0, 0, 20, 1))
	b.add(b.transfer(1, 0, 20, 9))
	b.add(b.transfer(2, 0, 20, 2))
	b.pool.limits.Bytes = b.pool.bytes
	large := func(who int, tip int64, data int) *types.Transaction {
		return b.sign(who, &types.DynamicFeeTx{
			ChainID: b.config.ChainID, Gas: 30000, To: &common.Address{1}, Data: make([]byte, data),
			GasFeeCap: big.NewInt(30 * gwei), GasTipCap: big.NewInt(tip * gwei),
		})
	}
	b.refuse(large(3, 2, 50), "transaction underpriced")  // evicting the first is not enough, and the next pays as much
	b.refuse(large(2, 8, 200), "transaction underpriced") // nor is it together with the one to be replaced
	b.waits("0:0 1:0 2:0")
	b.add(large(3, 3, 50)) // evicts two
	b.waits("1:0 3:0")

	b = newBench(t, Limits{Transactions: 4, Bytes: 1 << 20, Executable: 3, Waiting: 3, Lifetime: time.Hour})
	b.add(b.transfer(0, 0, 20, 1))
	b.add(b.transfer(0, 1, 20, 7))
	b.add(b.transfer(1, 0, 20, 2))
	b.add(b.transfer(1, 1, 20, 9))
	b.refuse(b.transfer(1, 2, 20, 6), "transaction underpriced") // all cheaper ones have dependents that are not
	b.waits("0:0 0:1 1:0 1:1")
	b.add(b.transfer(2, 0, 20, 8))
	b.waits("0:0 1:0 1:1 2:0")
	b.refuse(b.transfer(0, 1, 20, 1), "transaction underpriced")
	b.refuse(b.transfer(0, 1, 20, 6), "transaction underpriced") // it cannot evict one on which it depends
	b.waits("0:0 1:0 1:1 2:0")
}

// What a sender has above its share makes room for other senders, whatever they pay.
func TestFairShare(t *testing.T) {
	b := newBench(t, Limits{Transactions: fairShare + 4, Bytes: 1 << 20, Executable: 100, Waiting: 100, Lifetime: time.Hour})
	for nonce := range uint64(fairShare + 2) {
		b.add(b.transfer(0, nonce, 20, 9))
	}
	b.add(b.transfer(1, 0, 20, 3))
	b.add(b.transfer(1, 1, 20, 4))
	want := func(who, count int) {
		t.Helper()
		if got := len(b.pool.ContentFrom(b.address(who)).Pending); got != count {
			t.Errorf("the pool has %d transactions of sender %d, expected %d", got, who, count)
		}
	}
	b.refuse(b.transfer(2, 1, 20, 1), "transaction underpriced") // it waits for an earlier nonce
	b.refuse(b.transfer(2, 0, 0, 0), "transaction underpriced")  // the next block cannot include it
	want(0, fairShare+2)
	for nonce := range uint64(2) {
		b.add(b.transfer(2, nonce, 20, 1))
	}
	want(0, fairShare)
	want(1, 2)
	want(2, 2)
	b.refuse(b.transfer(2, 2, 20, 1), "transaction underpriced") // all are within their shares
	b.add(b.transfer(3, 0, 20, 5))                               // evicts the last of the cheapest
	want(2, 1)
	b.refuse(b.transfer(0, fairShare, 20, 1), "transaction underpriced") // a sender above its share evicts cheaper ones only
	b.add(b.transfer(0, fairShare, 20, 9))
	want(2, 0)
	want(0, fairShare+1)

	// The sender that has most loses first.
	b = newBench(t, Limits{Transactions: 2*fairShare + 10, Bytes: 1 << 20, Executable: 100, Waiting: 100, Lifetime: time.Hour})
	for nonce := range uint64(fairShare + 9) {
		b.add(b.transfer(0, nonce, 20, 9))
	}
	for nonce := range uint64(fairShare + 1) {
		b.add(b.transfer(1, nonce, 20, 3))
	}
	for nonce := range uint64(8) {
		b.add(b.transfer(2, nonce, 20, 1))
	}
	want(0, fairShare+1)
	want(1, fairShare+1)
}

// Only the cheaper ones make room in bytes: transactions above the share may be small.
func TestFairShareOfBytes(t *testing.T) {
	b := newBench(t, DefaultLimits())
	for nonce := range uint64(fairShare + 2) {
		b.add(b.transfer(0, nonce, 20, 9))
	}
	b.add(b.transfer(1, 0, 20, 3))
	b.add(b.transfer(1, 1, 20, 4))
	b.pool.limits.Bytes = b.pool.bytes + 10 // their sizes differ by some bytes
	b.add(b.transfer(2, 0, 20, 5))
	for who, count := range []int{fairShare + 2, 1, 1} {
		if got := len(b.pool.ContentFrom(b.address(who)).Pending); got != count {
			t.Errorf("the pool has %d transactions of sender %d, expected %d", got, who, count)
		}
	}
}
