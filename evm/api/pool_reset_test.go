package api_test

import (
	"context"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/pool"
	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/common"
)

// The transactions of a branch that loses wait again.
func TestReturnedToPool(t *testing.T) {
	o := serveOpen(t)
	o.chain.SetPool(pool.New(o.chain.Executor().Config(), pool.DefaultLimits()))
	ctx, stop := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() { kept <- o.chain.RunPool(ctx, nil) }()
	until := func(what string, is func() bool) {
		t.Helper()
		for attempt := 0; !is(); attempt++ {
			if attempt == 10_000 {
				t.Fatalf("waited in vain: %s", what)
			}
			select {
			case err := <-kept:
				t.Fatalf("the pool is kept no more: %v", err)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	waits := func(hash common.Hash) bool {
		_, _, is := o.chain.Pool().Get(hash)
		return is
	}
	until("the pool knows the head", func() bool {
		_, err := o.chain.Pool().Nonce(ctx, o.sender)
		return err == nil
	})
	view, err := o.chain.View()
	if err != nil {
		t.Fatal(err)
	}
	// Only the keeper tells the pool of blocks, so it has seen what the pool has.
	first, second := o.send(0), o.send(1)
	o.build()
	until("two are included", func() bool { return !waits(first) && !waits(second) })
	third := o.send(2)
	o.build()
	until("three are included", func() bool { return !waits(third) })
	if err := o.follower.SetHead(ctx, view.Head().Hash, chain.Ref{}, chain.Ref{}); err != nil {
		t.Fatal(err)
	}
	until("all wait again", func() bool { return waits(first) && waits(second) && waits(third) })
	if pending, queued := o.chain.Pool().Stats(); pending != 3 || queued != 0 {
		t.Errorf("%d are pending and %d queued, expected 3 and 0", pending, queued)
	}
	stop()
	if err := <-kept; err != nil {
		t.Error(err)
	}
}

// Transactions that a reorganization drops while nothing keeps the pool return once something does: a keeper that has failed is started
// again.
func TestReturnedToPoolLater(t *testing.T) {
	o := serveOpen(t)
	o.chain.SetPool(pool.New(o.chain.Executor().Config(), pool.DefaultLimits()))
	view, err := o.chain.View()
	if err != nil {
		t.Fatal(err)
	}
	waits := func(hash common.Hash) bool {
		_, _, is := o.chain.Pool().Get(hash)
		return is
	}
	// keep keeps the pool until something is so.
	keep := func(what string, is func() bool) {
		t.Helper()
		defer o.keepPool()()
		for end := time.Now().Add(await.Patience); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waited in vain: %s", what)
			}
		}
	}
	keep("the pool knows the head", func() bool { return o.chain.Pool().Head() != nil })
	first := o.send(0)
	o.build()
	keep("it is included", func() bool { return !waits(first) })
	if err := o.follower.SetHead(t.Context(), view.Head().Hash, chain.Ref{}, chain.Ref{}); err != nil {
		t.Fatal(err)
	}
	keep("it waits again", func() bool { return waits(first) })
}
