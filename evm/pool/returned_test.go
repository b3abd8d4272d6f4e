package pool

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Transactions of dropped blocks return once the pool can follow, also those of which it was told before.
func TestReturnedAfterFailure(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.transfer(0, 0, 2, 1))
	failing := errors.New("no state")
	header := &types.Header{Number: big.NewInt(8), Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(gwei), Time: 1e9}
	for _, tx := range []*types.Transaction{b.transfer(1, 0, 2, 1), b.transfer(1, 1, 2, 1)} {
		if err := b.pool.Reset(t.Context(), Head{header, unreadable{b.state, failing}}, types.Transactions{tx}); !errors.Is(err, failing) {
			t.Fatalf("the pool followed without state: %v", err)
		}
	}
	b.waits("0:0")
	b.head(types.Transactions{b.transfer(2, 0, 2, 1)})
	b.waits("0:0 1:0 1:1 2:0")
	b.pool.Remove(b.transfer(1, 1, 2, 1).Hash())
	b.head(nil) // once only
	b.waits("0:0 1:0 2:0")
}

// A transaction of a dropped block whose sender cannot be read returns with a later head.
func TestReturnedWithoutSender(t *testing.T) {
	b := newBench(t, DefaultLimits())
	header := &types.Header{Number: big.NewInt(8), Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(gwei), Time: 1e9}
	state := lacking{b.state, evm.HashAddress(b.address(1))}
	if err := b.pool.Reset(t.Context(), Head{header, state}, types.Transactions{b.transfer(1, 0, 2, 1), b.transfer(2, 0, 2, 1)}); err != nil {
		t.Fatal(err)
	}
	b.waits("2:0")
	b.head(nil)
	b.waits("1:0 2:0")
}

// fail resets the pool to a head whose state cannot be read.
func (b *bench) fail(returned types.Transactions) {
	b.t.Helper()
	header := &types.Header{Number: big.NewInt(8), Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(gwei), Time: 1e9}
	if err := b.pool.Reset(b.t.Context(), Head{header, unreadable{b.state, errors.New("no state")}}, returned); err == nil {
		b.t.Fatal("the pool followed without state")
	}
}

// Transactions return in the order of their nonces, also if a later head drops older blocks. In another order, more
// would wait for an earlier nonce than may.
func TestReturnedInOrderOfNonces(t *testing.T) {
	b := newBench(t, DefaultLimits())
	b.add(b.transfer(1, 0, 2, 1))
	txs := b.inOrder(0, 140)
	b.fail(txs[70:])
	b.fail(txs[:70])
	b.head(nil)
	if content := b.pool.ContentFrom(b.address(0)); len(content.Pending) != len(txs) {
		t.Errorf("%d of %d transactions are pending, and %d wait for an earlier nonce", len(content.Pending), len(txs), len(content.Queued))
	}
}

// While the pool cannot follow, it keeps as many transactions of dropped blocks as it may hold: those that others of
// their sender need first.
func TestReturningIsBounded(t *testing.T) {
	limits := DefaultLimits()
	limits.Transactions = 2
	b := newBench(t, limits)
	b.add(b.transfer(1, 0, 2, 1))
	txs := b.inOrder(0, 3)
	b.fail(txs)
	if left := b.pool.returning; !slices.Equal(left, txs[:2]) {
		t.Errorf("%d transactions are kept, expected the first two", len(left))
	}
}

// The transactions of dropped blocks that the pool keeps have no more bytes than it may hold.
func TestBytesOfReturningAreBounded(t *testing.T) {
	limits := DefaultLimits()
	limits.Bytes = 1000
	b := newBench(t, limits)
	b.add(b.transfer(1, 0, 2, 1))
	txs := b.inOrder(0, 100)
	fit, bytes := 0, 0
	for bytes+int(txs[fit].Size()) <= limits.Bytes {
		bytes += int(txs[fit].Size())
		fit++
	}
	b.fail(txs[50:])
	b.fail(txs[:50])
	if left := b.pool.returning; !slices.Equal(left, txs[:fit]) {
		t.Errorf("%d transactions are kept, expected the first %d", len(left), fit)
	}
}

// A transaction that two branches had is kept once.
func TestReturningAreKeptOnce(t *testing.T) {
	limits := DefaultLimits()
	limits.Transactions = 3
	b := newBench(t, limits)
	b.add(b.transfer(1, 0, 2, 1))
	txs := b.inOrder(0, 3)
	b.fail(txs[:2])
	b.fail(txs)
	if left := b.pool.returning; !slices.Equal(left, txs) {
		t.Errorf("%d transactions are kept, expected each of three once", len(left))
	}
}

// lacking is a state in which one account cannot be read.
type lacking struct {
	accounts
	hash common.Hash
}

func (l lacking) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	if address == l.hash {
		return nil, errors.New("no answer")
	}
	return l.accounts.Account(ctx, address)
}
