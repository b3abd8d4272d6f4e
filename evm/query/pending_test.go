package query

import (
	"context"
	"errors"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/pool"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/params"
)

// Waiting for the pending block while it is being built can be cancelled.
func TestPendingCanBeCancelled(t *testing.T) {
	c := NewChain(new(archive.Archive), nil, nil)
	c.SetPool(pool.New(params.MergedTestChainConfig, pool.DefaultLimits()))
	if err := c.pending.making.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := &View{chain: c, branch: new(tip.Branch)}
	if view, err := v.withPending(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, expected the error of the context", view, err)
	}
}
