package rowcache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/kv"
	"ashlar/kv/kvtest"
	"ashlar/kv/rowcache"
)

// distant returns a store with a few rows, each of whose statements takes a millisecond.
func distant(t *testing.T) *kvtest.Distant {
	t.Helper()
	below := open(t)
	b := below.NewBatch()
	for _, block := range []uint64{2, 3} {
		b.Put(versions, []byte("p"), block, fmt.Appendf(nil, "version %d", block))
		b.Put(list, []byte("p"), block<<list.IndexBits, fmt.Appendf(nil, "row %d", block))
	}
	b.Put(named, []byte("p"), 3, []byte("named"))
	if err := below.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return &kvtest.Distant{Store: below, Statement: time.Millisecond}
}

// TestEqualReadsAreMadeOnce makes the same read many times at once. One statement answers all.
func TestEqualReadsAreMadeOnce(t *testing.T) {
	newestOf := func(partition string) func(context.Context, *rowcache.Store) string {
		return func(ctx context.Context, s *rowcache.Store) string {
			value, _, err := s.Newest(ctx, versions, []byte(partition), 4, nil)
			return fmt.Sprintf("%s, %v", value, err)
		}
	}
	versionsDown := func(ctx context.Context, s *rowcache.Store) string {
		rows := ""
		err := s.Descend(ctx, versions, []byte("p"), 4, func(_ uint64, value []byte) (bool, error) {
			rows += string(value) + ", "
			return false, nil
		})
		return fmt.Sprintf("%s%v", rows, err)
	}
	prefetched := func(want kv.Want, read func(context.Context, *rowcache.Store) string) func(context.Context, *rowcache.Store) string {
		return func(ctx context.Context, s *rowcache.Store) string {
			s.Prefetch(kv.Aside(ctx), []kv.Want{want})
			return read(ctx, s)
		}
	}
	rowsUp := func(ctx context.Context, s *rowcache.Store) string {
		rows, c := "", s.Scan(ctx, list, []byte("p"), 0, 19)
		for c.Next() {
			rows += string(c.Value()) + ", "
		}
		return fmt.Sprintf("%s%v", rows, c.Close())
	}
	for name, test := range map[string]struct {
		read func(context.Context, *rowcache.Store) string
		want string
	}{
		"row of a name": {func(ctx context.Context, s *rowcache.Store) string {
			value, err := s.Get(ctx, named, []byte("p"), 3, nil)
			return fmt.Sprintf("%s, %v", value, err)
		}, "named, <nil>"},
		"newest":             {newestOf("p"), "version 3, <nil>"},
		"newest of none":     {newestOf("q"), ", " + kv.ErrNotFound.Error()},
		"newest, prefetched": {prefetched(kv.Want{Table: versions, Partition: []byte("p"), To: 4, Newest: 1}, newestOf("p")), "version 3, <nil>"},
		"several versions":   {prefetched(kv.Want{Table: versions, Partition: []byte("p"), To: 4, Newest: 8}, versionsDown), "version 3, version 2, <nil>"},
		"range":              {prefetched(kv.Want{Table: list, Partition: []byte("p"), To: 19}, rowsUp), "row 2, row 3, <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			below := distant(t)
			synctest.Test(t, func(t *testing.T) {
				cached := cache(t, below, rowcache.Options{})
				cached.Follow(4, nil)
				var readers sync.WaitGroup
				for range 50 {
					readers.Go(func() {
						if got := test.read(t.Context(), cached); got != test.want {
							t.Errorf("read %q, expected %q", got, test.want)
						}
					})
				}
				readers.Wait()
				if statements := below.Count.Load(); statements != 1 {
					t.Errorf("%d statements, expected 1", statements)
				}
			})
		})
	}
}

// TestVersionsJoinAPrefetch reads versions that are being prefetched.
func TestVersionsJoinAPrefetch(t *testing.T) {
	below := distant(t)
	synctest.Test(t, func(t *testing.T) {
		cached := cache(t, below, rowcache.Options{})
		cached.Follow(4, nil)
		go cached.Prefetch(kv.Aside(t.Context()), []kv.Want{{Table: versions, Partition: []byte("p"), To: 4, Newest: 8}})
		synctest.Wait()
		if got := descend(cached, versions, []byte("p"), 4, 9); got != descend(below.Store, versions, []byte("p"), 4, 9) {
			t.Errorf("read %s", got)
		}
		if statements, stats := below.Count.Load(), cached.Stats(); statements != 1 || stats.RoundTrips != 1 {
			t.Errorf("%d statements, %d round trips, expected 1 and 1", statements, stats.RoundTrips)
		}
	})
}

// TestJoinedReadFails joins a read that is canceled, that fails, or that takes longer than its joiner may wait. Only a reader whose own
// context has ended, or whose own read has failed, fails.
func TestJoinedReadFails(t *testing.T) {
	read := func(ctx context.Context, s kv.Store) error {
		_, _, err := s.Newest(ctx, versions, []byte("p"), 4, nil)
		return err
	}
	for name, test := range map[string]struct {
		first, second time.Duration // deadlines
		fail          error         // of the first statement
		wants         [2]error
		took          time.Duration
	}{
		"canceled":   {first: 5, second: 100, wants: [2]error{context.DeadlineExceeded, nil}, took: 5 + 10},
		"failed":     {first: 100, second: 100, fail: errFailed, wants: [2]error{errFailed, nil}, took: 10 + 10},
		"takes long": {first: 100, second: 5, wants: [2]error{nil, context.DeadlineExceeded}, took: 10},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			synctest.Test(t, func(t *testing.T) {
				cached := cache(t, &patient{Store: store, fail: test.fail}, rowcache.Options{})
				cached.Follow(4, nil)
				began := time.Now()
				var readers sync.WaitGroup
				for i, deadline := range []time.Duration{test.first, test.second} {
					readers.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), deadline*time.Millisecond)
						defer cancel()
						if err := read(ctx, cached); !errors.Is(err, test.wants[i]) && (test.wants[i] != nil || !errors.Is(err, kv.ErrNotFound)) {
							t.Errorf("reader %d: %v, expected %v", i, err, test.wants[i])
						}
					})
					synctest.Wait()
				}
				readers.Wait()
				if took := time.Since(began); took != test.took*time.Millisecond {
					t.Errorf("the reads took %s, expected %d ms", took, test.took)
				}
			})
		})
	}
}

var errFailed = errors.New("failed")

// patient is a store whose reads take ten milliseconds, or until their contexts end.
type patient struct {
	kv.Store
	fail error // of the next read
}

func (p *patient) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	err := p.fail
	p.fail = nil
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return dst, 0, ctx.Err()
	}
	if err != nil {
		return dst, 0, err
	}
	return p.Store.Newest(ctx, t, partition, at, dst)
}

// TestReadsThatAreNotKeptAreNotJoined makes the same read twice at once, of a block that has not settled. Neither waits for the other.
func TestReadsThatAreNotKeptAreNotJoined(t *testing.T) {
	below := distant(t)
	synctest.Test(t, func(t *testing.T) {
		cached := cache(t, below, rowcache.Options{})
		cached.Follow(2, nil)
		began := time.Now()
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				if value, _, err := cached.Newest(t.Context(), versions, []byte("p"), 3, nil); err != nil || string(value) != "version 3" {
					t.Errorf("read %q, %v", value, err)
				}
			})
		}
		readers.Wait()
		if took, statements := time.Since(began), below.Count.Load(); took != time.Millisecond || statements != 2 {
			t.Errorf("%d statements in %s, expected 2 in 1ms", statements, took)
		}
	})
}
