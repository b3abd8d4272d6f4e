package rowcache_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/kv"
	"ashlar/kv/rowcache"
)

// TestReadsAsideAreNoHits reads a row aside several times, then for somebody. The row was read from the store for the first answer,
// so only the second is a hit.
func TestReadsAsideAreNoHits(t *testing.T) {
	below := open(t)
	b := below.NewBatch()
	b.Put(versions, []byte{1}, 3, []byte("row"))
	if err := below.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	cached := cache(t, below, rowcache.Options{})
	defer cached.Close()
	cached.Follow(10, nil)
	read := func(aside bool) {
		t.Helper()
		ctx := t.Context()
		if aside {
			ctx = kv.Aside(ctx)
		}
		if value, _, err := cached.Newest(ctx, versions, []byte{1}, 5, nil); err != nil || string(value) != "row" {
			t.Fatalf("read %q, %v", value, err)
		}
	}
	for i, step := range []struct {
		aside        bool
		hits, misses int64
	}{{true, 0, 1}, {true, 0, 1}, {true, 0, 1}, {false, 0, 1}, {true, 0, 1}, {false, 1, 1}} {
		read(step.aside)
		if stats := cached.Stats(); stats.CacheHits != step.hits || stats.CacheMisses != step.misses || stats.RoundTrips != 0 {
			t.Errorf("read %d: %d hits, %d misses, %d round trips, expected %d, %d and 0", i, stats.CacheHits, stats.CacheMisses, stats.RoundTrips, step.hits, step.misses)
		}
	}
}

// slowStore counts the reads that are under way.
type slowStore struct {
	kv.Store
	now, most, all atomic.Int64
}

func (*slowStore) Close() error { return nil }

func (s *slowStore) Newest(context.Context, *kv.Table, []byte, uint64, []byte) ([]byte, uint64, error) {
	s.all.Add(1)
	now := s.now.Add(1)
	for most := s.most.Load(); most < now && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	time.Sleep(time.Millisecond)
	s.now.Add(-1)
	return nil, 0, kv.ErrNotFound
}

// TestPrefetchAsideIsBounded prefetches many rows aside for several callers at once.
func TestPrefetchAsideIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &slowStore{}
		cached, err := rowcache.New(t.Context(), below, rowcache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer cached.Close()
		var callers sync.WaitGroup
		for caller := range 32 {
			wants := make([]kv.Want, 300)
			for i := range wants {
				wants[i] = kv.Want{Table: versions, Partition: []byte{byte(caller), byte(i >> 8), byte(i)}, To: 5, Newest: 1}
			}
			callers.Go(func() { cached.Prefetch(kv.Aside(t.Context()), wants) })
		}
		callers.Wait()
		if most := below.most.Load(); most != 1024 {
			t.Errorf("%d reads were under way at once, expected 1024", most)
		}
		if all := below.all.Load(); all != 32*300 {
			t.Errorf("%d rows were read, expected all %d", all, 32*300)
		}
	})
}
