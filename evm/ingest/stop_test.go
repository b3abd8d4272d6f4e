package ingest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/kv"
)

// hanging is a store that, once it hangs, makes no write before ctx is done, as a cluster does whose
// nodes are lost.
type hanging struct {
	kv.Store
	hangs   atomic.Bool
	writing chan struct{} // gets a value for each write that hangs
}

func (h *hanging) Write(ctx context.Context, b kv.Batch) error {
	if !h.hangs.Load() {
		return h.Store.Write(ctx, b)
	}
	h.writing <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// TestStopWhileStoreHangs stops a follower whose store does not answer while blocks settle.
func TestStopWhileStoreHangs(t *testing.T) {
	blocks := ingesttest.Chain(t)
	f := newFollowed(t, ingest.Depths{Unfinalized: 4, Most: 100})
	store := &hanging{Store: f.store, writing: make(chan struct{}, 100)}
	f.openOver(store)
	f.follow(blocks[:8]...)
	store.hangs.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- f.follower.Run(ctx) }()
	<-store.writing
	stop()
	select {
	case <-ended:
	case <-time.After(4 * ingest.StopTime):
		t.Fatalf("the follower runs %v after it was stopped", 4*ingest.StopTime)
	}
	store.hangs.Store(false)
	f.restart()
	f.settle(4)
}
