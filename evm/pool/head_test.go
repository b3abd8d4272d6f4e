package pool

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Another Ashlar in front concludes from these words that it can ask another node.
func TestNoHeadIsTemporary(t *testing.T) {
	if text := ErrNoHead.Error(); !strings.HasSuffix(text, ": try again later") {
		t.Errorf("%q does not say when to try again", text)
	}
}

// Transactions that come right after the start wait for the first head, but not for ever.
func TestFirstHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultLimits())
		tx := b.transfer(0, 0, 2, 1)
		b.pool = New(b.config, DefaultLimits())
		if err := b.pool.Add(t.Context(), tx); !errors.Is(err, ErrNoHead) {
			t.Errorf("without a head: %v, expected %v", err, ErrNoHead)
		}
		if _, err := b.pool.Nonce(t.Context(), b.address(0)); !errors.Is(err, ErrNoHead) {
			t.Errorf("the nonce without a head: %v, expected %v", err, ErrNoHead)
		}
		added := make(chan error)
		go func() { added <- b.pool.Add(t.Context(), tx) }()
		synctest.Wait()
		b.head(nil)
		if err := <-added; err != nil {
			t.Error(err)
		}
		b.waits("0:0")
	})
}

// Calls that find the pool behind wait for it, but a pool that cannot follow delays them once only.
func TestAwaitHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultLimits())
		reset := func(number int64, state evm.State) error {
			header := &types.Header{Number: big.NewInt(number), Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(gwei), Time: 1e9}
			return b.pool.Reset(t.Context(), Head{header, state}, nil)
		}
		await := func(number uint64) (waited time.Duration) {
			t.Helper()
			begun := time.Now()
			if err := b.pool.AwaitHead(t.Context(), func(head *types.Header) bool { return head.Number.Uint64() == number }); err != nil {
				t.Error(err)
			}
			return time.Since(begun)
		}
		expect := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s: waited for %v, expected %v", what, got, want)
			}
		}
		expect("at the head", await(7), 0)

		time.AfterFunc(300*time.Millisecond, func() {
			if err := reset(8, b.state); err != nil {
				t.Error(err)
			}
		})
		expect("until the pool follows", await(8), 300*time.Millisecond)

		b.add(b.transfer(0, 0, 2, 1))
		failing := errors.New("no state")
		if err := reset(9, unreadable{b.state, failing}); !errors.Is(err, failing) {
			t.Errorf("the pool followed without state: %v", err)
		}
		expect("while it cannot follow", await(9), time.Second)
		expect("again", await(9), 0)
		expect("for the next block", await(10), 0)
		if head := b.pool.Head(); head.Number.Uint64() != 8 {
			t.Errorf("the pool has adapted to block %d, expected 8", head.Number)
		}
		var unread *StateError
		if err := b.pool.Add(t.Context(), b.transfer(1, 0, 2, 1)); !errors.As(err, &unread) || !errors.Is(err, failing) {
			t.Errorf("without state: %v, expected a StateError", err)
		}

		for number := range int64(2) { // whose clients have gone before the pool followed
			if err := reset(10+number, b.state); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if err := b.pool.AwaitHead(ctx, func(*types.Header) bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call that ends: %v", err)
			}
			cancel()
			time.Sleep(time.Minute)
		}
		if err := reset(12, b.state); err != nil {
			t.Fatal(err)
		}
		expect("behind again", await(13), time.Second)
	})
}

// unreadable is a state whose accounts cannot be read.
type unreadable struct {
	accounts
	err error
}

func (u unreadable) Account(context.Context, common.Hash) (*types.StateAccount, error) {
	return nil, u.err
}
