package tip_test

import (
	"context"
	"errors"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestFailuresAreReported: whichever operation of the store fails, what needs it says so: nothing passes for done, or for
// absent.
func TestFailuresAreReported(t *testing.T) {
	for name, run := range map[string]func(context.Context, kv.Store) error{
		"change":  change,
		"clear":   func(ctx context.Context, store kv.Store) error { return tip.Clear(ctx, store, ref(10, 'a')) },
		"restart": func(ctx context.Context, store kv.Store) error { return restart(ctx, store, ref(10, 'a')) },
		"restart after a crash": func(ctx context.Context, store kv.Store) error {
			return restart(ctx, store, ref(11, 'b'))
		},
		"watch": watch,
		"rows of a block": func(ctx context.Context, store kv.Store) error {
			return tip.EachRow(ctx, store, allTables(), ref(12, 'a'), func(*kv.Table, kv.Row) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				below := openStore(t, vfs.NewMem())
				writer := openTip(t, below, ref(10, 'a'))
				for number := uint64(11); number <= 13; number++ {
					grow(t, writer, ref(number, 'a'), ref(number-1, 'a'))
				}
				grow(t, writer, ref(11, 'b'), ref(10, 'a'))
				setHead(t, writer, ref(13, 'a'))
				store := &kvtest.Failing{Store: below, Left: n}
				err := run(t.Context(), store)
				below.Close()
				if store.Left >= 0 { // all succeeded
					if err != nil || n == 0 {
						t.Errorf("after %d operations: %v", n, err)
					}
					return
				}
				if !errors.Is(err, kvtest.ErrBroken) {
					t.Errorf("operation %d fails: %v, expected %v", n, err, kvtest.ErrBroken)
				}
			}
		})
	}
}

// change changes a tip in all ways, up to the first error.
func change(ctx context.Context, store kv.Store) error {
	of, err := tip.Open(ctx, store, allTables(), ref(10, 'a'))
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return of.Add(ctx, ref(14, 'a'), ref(13, 'a').Hash, new(tip.Rows)) },
		func() error { return of.SetHead(ctx, ref(14, 'a').Hash, ref(12, 'a'), ref(11, 'a')) },
		func() error { return of.Prune(ctx, 0) },
		func() error { return of.Settled(ctx, ref(11, 'a')) },
		func() error { return of.Overtaken(ctx, ref(20, 'a')) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// restart opens a tip, and reads all blocks of its head's branch in all ways.
func restart(ctx context.Context, store kv.Store, settled chain.Ref) error {
	of, err := tip.Open(ctx, store, allTables(), settled)
	if err != nil {
		return err
	}
	rows, key := of.Forkchoice().Head.Over(store), []byte("p")
	keys := []kv.Key{{Partition: key, Sort: 9}}
	_, errGet := rows.Get(ctx, perBlock, key, 9, nil)
	if errors.Is(errGet, kv.ErrNotFound) {
		errGet = nil
	}
	_, _, errNewest := rows.Newest(ctx, versions, key, 9, nil)
	if errors.Is(errNewest, kv.ErrNotFound) {
		errNewest = nil
	}
	return errors.Join(errGet, errNewest,
		rows.Descend(ctx, versions, key, 9, func(uint64, []byte) (bool, error) { return false, nil }),
		rows.GetMany(ctx, perBlock, keys, func(int, []byte) error { return nil }),
		rows.NewestMany(ctx, versions, keys, func(int, uint64, []byte) error { return nil }))
}

// watch watches a tip, which is changed meanwhile.
func watch(ctx context.Context, store kv.Store) error {
	settled := ref(10, 'a')
	watched, err := tip.Watch(ctx, store, allTables(), func(context.Context) (chain.Ref, error) { return settled, nil })
	if err != nil {
		return err
	}
	of, err := tip.Open(ctx, store, allTables(), settled)
	if err == nil {
		err = of.SetHead(ctx, ref(12, 'a').Hash, chain.Ref{}, chain.Ref{})
	}
	if err != nil {
		return err
	}
	settled = ref(11, 'a')
	return watched.Refresh(ctx)
}

// TestFoundFails: an error of the function that is called with rows ends a read, whether a row is of the branch or below it.
func TestFoundFails(t *testing.T) {
	store, writer, settled := withHead(t)
	batch := store.NewBatch()
	batch.Put(versions, []byte("last"), settled.Number, []byte("settled"))
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	rows := writer.Forkchoice().Head.Over(store)
	for _, at := range []uint64{10, 11} {
		keys := []kv.Key{{Partition: []byte("last"), Sort: at}, {Partition: []byte("last"), Sort: at}}
		calls := 0
		fail := func() error { calls++; return kvtest.ErrBroken }
		for name, err := range map[string]error{
			"Descend": rows.Descend(t.Context(), versions, []byte("last"), at, func(uint64, []byte) (bool, error) { return false, fail() }),
			"GetMany": rows.GetMany(t.Context(), versions, keys, func(int, []byte) error { return fail() }),
			"NewestMany": rows.NewestMany(t.Context(), versions, keys, func(int, uint64, []byte) error {
				return fail()
			}),
		} {
			if err != kvtest.ErrBroken {
				t.Errorf("%s at %d: %v, expected %v", name, at, err, kvtest.ErrBroken)
			}
		}
		if calls != 3 {
			t.Errorf("at %d: %d calls, expected 3: none after an error", at, calls)
		}
	}
}

// TestReadsEndWithTheirContext: also those that the branch alone can answer.
func TestReadsEndWithTheirContext(t *testing.T) {
	store, writer, _ := withHead(t)
	rows := writer.Forkchoice().Head.Over(store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, get := rows.Get(ctx, versions, []byte("last"), 11, nil)
	_, _, newest := rows.Newest(ctx, versions, []byte("last"), 11, nil)
	descend := rows.Descend(ctx, versions, []byte("last"), 11, func(uint64, []byte) (bool, error) { return true, nil })
	for name, err := range map[string]error{"Get": get, "Newest": newest, "Descend": descend} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, expected that the context is done", name, err)
		}
	}
}
