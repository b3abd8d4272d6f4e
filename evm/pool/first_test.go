package pool

import (
	"errors"
	"testing"
	"testing/synctest"
)

// Transactions that come right after the start wait for the first head, but not for ever.
func TestFirstHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, DefaultLimits())
		tx := b.transfer(0, 0, 2, 1)
		b.pool = New(b.config, DefaultLimits())
		if err := b.pool.Add(t.Context(), tx); !errors.Is(err, errNoHead) {
			t.Errorf("without a head: %v, expected %v", err, errNoHead)
		}
		if _, err := b.pool.Nonce(t.Context(), b.address(0)); !errors.Is(err, errNoHead) {
			t.Errorf("the nonce without a head: %v, expected %v", err, errNoHead)
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
