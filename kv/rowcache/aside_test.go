package rowcache_test

import (
	"testing"

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
