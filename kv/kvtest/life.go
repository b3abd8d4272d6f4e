package kvtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ashlar/kv"
)

// RunReopen tests that data outlives the store that wrote it. place makes a place
// for one store and returns a function that opens the store there, again and
// again, each time after the last one was closed.
func RunReopen(t *testing.T, place func(t *testing.T) (open func(t *testing.T) kv.Store)) {
	t.Run("Close", func(t *testing.T) { testReopen(t, place(t), leave) })
	t.Run("Sync", func(t *testing.T) { testReopen(t, place(t), synchronize) })
	t.Run("Compact", func(t *testing.T) { testReopen(t, place(t), compact) })
}

// RunReopenOnce is [RunReopen] for a store that takes milliseconds for each operation: it
// settles one store in all these ways in turn.
func RunReopenOnce(t *testing.T, place func(t *testing.T) (open func(t *testing.T) kv.Store)) {
	testReopen(t, place(t), leave, synchronize, compact)
}

func leave(kv.Store) error { return nil }

func synchronize(s kv.Store) error { return s.Sync(context.Background()) }

func compact(s kv.Store) error { return s.Compact(context.Background()) }

// testReopen grows a store over several lives and compares it with the model in each. Before
// a life ends, the store is settled in one of the ways.
func testReopen(t *testing.T, open func(t *testing.T) kv.Store, ways ...func(kv.Store) error) {
	c, m := newChooser(2), newModel()
	for life := range 4 {
		s := open(t)
		m.checkAll(t, s)
		for range 20 {
			c.write(t, s, m)
		}
		name := fmt.Sprint("life ", life)
		if err := s.CompareAndSet(context.Background(), name, nil, []byte("begun")); err != nil {
			t.Errorf("CompareAndSet: %v", err)
		}
		m.pointers[name] = "begun"
		c.write(t, s, m)
		if err := ways[life%len(ways)](s); err != nil {
			t.Error(err)
		}
		m.checkAll(t, s)
		closeStore(t, s)
	}
	s := open(t)
	m.checkAll(t, s)
	closeStore(t, s)
}

// testCanceled calls what may take long with a context that is done.
func testCanceled(t *testing.T, s kv.Store) {
	put(t, s, row{list, "p", 1, "1"}, row{list, "p", 2, "2"}, row{list, "p", 3, "3"})
	ctx, cancel := context.WithCancel(context.Background())
	live := s.Scan(ctx, list, []byte("p"), 0, 9)
	if !live.Next() {
		t.Error("no first row")
	}
	keys := []kv.Key{key("p", 1), key("p", 2)}
	calls := 0
	err := s.GetMany(ctx, list, keys, func(int, []byte) error { calls++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("GetMany canceled after the first row: %d calls, %v", calls, err)
	}
	if live.Next() || live.Seek(1) || live.Seek(3) {
		t.Error("a cursor goes on after its context was canceled")
	}
	if err := live.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("cursor canceled: %v", err)
	}
	b := s.NewBatch()
	b.Put(list, []byte("p"), 4, []byte("4"))
	for what, err := range map[string]error{
		"Descend":    s.Descend(ctx, versions, []byte("p"), 9, func(uint64, []byte) (bool, error) { return false, nil }),
		"GetMany":    s.GetMany(ctx, list, keys, func(int, []byte) error { return nil }),
		"NewestMany": s.NewestMany(ctx, list, keys, func(int, uint64, []byte) error { return nil }),
		"Scan":       s.Scan(ctx, list, []byte("p"), 0, 9).Close(),
		"Write":      s.Write(ctx, b),
		"Compact":    s.Compact(ctx),
		"Walk":       walkError(s, ctx),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context: %v", what, err)
		}
	}
	expect(t, "row of a canceled Write", get(s, list, "p", 4), notFound)
}

func walkError(s kv.Store, ctx context.Context) (err error) {
	for _, err = range s.Walk(ctx, list, 0) {
	}
	return err
}

func testClosed(t *testing.T, s kv.Store) {
	ctx := context.Background()
	put(t, s, row{list, "p", 1, "1"})
	b := s.NewBatch()
	b.Put(list, []byte("p"), 2, []byte("2"))
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	get := func() error { _, err := s.Get(ctx, list, []byte("p"), 1, nil); return err }
	newest := func() error { _, _, err := s.Newest(ctx, list, []byte("p"), 1, nil); return err }
	pointer := func() error { _, err := s.Pointer(ctx, "head"); return err }
	keys := []kv.Key{key("p", 1)}
	c := s.Scan(ctx, list, []byte("p"), 0, 9)
	if c.Next() {
		t.Error("a cursor of a closed store has rows")
	}
	for what, err := range map[string]error{
		"Get":           get(),
		"Newest":        newest(),
		"Descend":       s.Descend(ctx, versions, []byte("p"), 9, func(uint64, []byte) (bool, error) { return false, nil }),
		"GetMany":       s.GetMany(ctx, list, keys, func(int, []byte) error { return nil }),
		"NewestMany":    s.NewestMany(ctx, list, keys, func(int, uint64, []byte) error { return nil }),
		"Scan":          c.Close(),
		"Pointer":       pointer(),
		"Write":         s.Write(ctx, b),
		"Sync":          s.Sync(ctx),
		"Drop":          s.Drop(ctx, transient, []byte("p")),
		"CompareAndSet": s.CompareAndSet(ctx, "head", nil, []byte("x")),
		"Walk":          walkError(s, ctx),
		"Compact":       s.Compact(ctx),
		"Close":         s.Close(),
	} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s of a closed store: %v", what, err)
		}
	}
	_ = s.NewBatch()
	_ = s.Stats()
}

func testStats(t *testing.T, s kv.Store) {
	put(t, s, row{list, "p", 1, string(make([]byte, 1<<20))})
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats(); got.DiskBytes <= 0 || got.MemoryBytes < 0 {
		t.Errorf("stats of a store with a row: %+v", got)
	}
}
