package ingest_test

import (
	"context"
	"errors"
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
	reads   atomic.Bool   // newest versions are not read either
	writing chan struct{} // gets a value for each write or read that hangs
}

func (h *hanging) Write(ctx context.Context, b kv.Batch) error {
	if !h.hangs.Load() {
		return h.Store.Write(ctx, b)
	}
	return h.hang(ctx)
}

func (h *hanging) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if !h.reads.Load() {
		return h.Store.Newest(ctx, t, partition, at, dst)
	}
	return dst, 0, h.hang(ctx)
}

func (h *hanging) hang(ctx context.Context) error {
	select {
	case h.writing <- struct{}{}:
	default:
	}
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

// TestStopImportWhileStoreHangs stops an import whose store does not answer, and repeats it when the
// store does.
func TestStopImportWhileStoreHangs(t *testing.T) {
	for name, reads := range map[string]bool{"Writes": false, "Reads": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newTarget(t)
			store := &hanging{Store: g.store, writing: make(chan struct{}, 1)}
			g.store = store
			g.reopen()
			store.hangs.Store(!reads)
			store.reads.Store(reads)
			blocks := ingesttest.Chain(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- g.importer.Import(ctx, ingesttest.SourceOf(blocks)) }()
			<-store.writing
			stop()
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the import ended with %v, expected %v", err, context.Canceled)
				}
			case <-time.After(4 * ingest.StopTime):
				t.Fatalf("the import runs %v after it was stopped", 4*ingest.StopTime)
			}
			store.hangs.Store(false)
			store.reads.Store(false)
			g.mustImport(blocks)
			if head, _ := g.archive.Settled(); head != ref(blocks[len(blocks)-1]) {
				t.Errorf("the head is %s after another import, expected %s", head, ref(blocks[len(blocks)-1]))
			}
		})
	}
}
