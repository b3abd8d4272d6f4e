package rowcache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/kv"
	"ashlar/kv/rowcache"
)

// during is a store in which something happens at the end of a read, when its answer is known.
type during struct {
	kv.Store
	happens func() // once; nil: nothing
	fail    error  // of all reads, which find nothing then; nil: none
}

func (d *during) end() {
	if happens := d.happens; happens != nil {
		d.happens = nil
		happens()
	}
}

func (d *during) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	defer d.end()
	if d.fail != nil {
		return dst, 0, d.fail
	}
	return d.Store.Newest(ctx, t, partition, at, dst)
}

func (d *during) NewestMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(int, uint64, []byte) error) error {
	defer d.end()
	if d.fail != nil {
		return d.fail
	}
	return d.Store.NewestMany(ctx, t, keys, found)
}

func (d *during) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(uint64, []byte) (bool, error)) error {
	defer d.end()
	if d.fail != nil {
		return d.fail
	}
	return d.Store.Descend(ctx, t, partition, at, found)
}

func (d *during) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	return &duringScan{d.Store.Scan(ctx, t, partition, from, to), d}
}

type duringScan struct {
	kv.Cursor
	of *during
}

func (c *duringScan) Next() bool            { return c.of.fail == nil && c.Cursor.Next() }
func (c *duringScan) Seek(sort uint64) bool { return c.of.fail == nil && c.Cursor.Seek(sort) }

// Close returns the error of the scan once.
func (c *duringScan) Close() error {
	defer c.of.end()
	err := errors.Join(c.of.fail, c.Cursor.Close())
	c.of.fail = nil
	return err
}

// readsOf are the kinds of reads of a partition "p", up to a block.
func readsOf(table *kv.Table) map[string]func(kv.Store, uint64) string {
	last := func(block uint64) uint64 { return (block+1)<<table.IndexBits - 1 }
	all := map[string]func(kv.Store, uint64) string{
		"newest": func(s kv.Store, block uint64) string { return newest(s, table, []byte("p"), last(block)) },
		"many":   func(s kv.Store, block uint64) string { return many(s, table, []byte("p"), last(block)) },
		"scan":   func(s kv.Store, block uint64) string { return scan(s, table, []byte("p"), 0, last(block), 0, 9) },
	}
	if table.Kind == kv.Versions {
		all["descend"] = func(s kv.Store, block uint64) string { return descend(s, table, []byte("p"), last(block), 9) }
	}
	return all
}

// forEachRead runs a test for each kind of read of a table of versions and of a list, with a store that has a
// row of block 1, and a cache that knows that block 4 is settled. put writes a row of a block to the store.
func forEachRead(t *testing.T, test func(t *testing.T, read func(kv.Store, uint64) string, below *during, cached *rowcache.Store, put func(block uint64, value string) written)) {
	for _, table := range []*kv.Table{versions, list} {
		for name, read := range readsOf(table) {
			t.Run(fmt.Sprintf("%s of %s", name, table.Name), func(t *testing.T) {
				below := &during{Store: open(t)}
				put := func(block uint64, value string) written {
					w := written{table, kv.Row{Partition: []byte("p"), Sort: block << table.IndexBits, Value: []byte(value)}}
					b := below.NewBatch()
					b.Put(w.table, w.Partition, w.Sort, w.Value)
					if err := below.Write(t.Context(), b); err != nil {
						t.Fatal(err)
					}
					return w
				}
				put(1, "old")
				cached := cache(t, below, rowcache.Options{})
				cached.Follow(4, nil)
				test(t, read, below, cached, put)
			})
		}
	}
}

// TestSettledDuringRead: a block that settles during a read is not in the answer. Later reads have its rows.
func TestSettledDuringRead(t *testing.T) {
	forEachRead(t, func(t *testing.T, read func(kv.Store, uint64) string, below *during, cached *rowcache.Store, put func(uint64, string) written) {
		for _, to := range []uint64{4, 5, 9} {
			below.happens = func() { cached.Follow(5, yield([]written{put(5, "new")})) }
			read(cached, to)
			below.end() // if the read did not need the store
			if got, want := read(cached, 5), read(below, 5); got != want {
				t.Errorf("after a read up to block %d: %s, expected %s", to, got, want)
			}
		}
	})
}

// TestUnsettledRowsAreNotKept: rows above the settled block may be replaced before their block settles, after a
// crash of the process that writes them.
func TestUnsettledRowsAreNotKept(t *testing.T) {
	for _, known := range []bool{true, false} { // the rows of block 5, when it settles
		forEachRead(t, func(t *testing.T, read func(kv.Store, uint64) string, below *during, cached *rowcache.Store, put func(uint64, string) written) {
			put(5, "dropped")
			if got, want := read(cached, 9), read(below, 9); got != want {
				t.Fatalf("%s, expected %s", got, want)
			}
			settles := yield([]written{put(5, "new")})
			if !known {
				settles = nil
			}
			cached.Follow(5, settles)
			if got, want := read(cached, 5), read(below, 5); got != want {
				t.Errorf("rows are known: %t: %s, expected %s", known, got, want)
			}
		})
	}
}

// TestUnknownRowsBetween: after a block with unknown rows has settled, those of the next are not taken for all that
// follow.
func TestUnknownRowsBetween(t *testing.T) {
	forEachRead(t, func(t *testing.T, read func(kv.Store, uint64) string, below *during, cached *rowcache.Store, put func(uint64, string) written) {
		read(cached, 4)
		put(5, "unknown")
		cached.Follow(5, nil)
		cached.Follow(6, yield([]written{put(6, "new")}))
		for _, to := range []uint64{6, 5, 4} {
			if got, want := read(cached, to), read(below, to); got != want {
				t.Errorf("up to block %d: %s, expected %s", to, got, want)
			}
		}
	})
}

// TestManyRowsSettle: a partition that each block writes has more rows than are kept of it. Those that are not are read.
func TestManyRowsSettle(t *testing.T) {
	forEachRead(t, func(t *testing.T, read func(kv.Store, uint64) string, below *during, cached *rowcache.Store, put func(uint64, string) written) {
		read(cached, 4)
		const last = 200
		for number := uint64(5); number <= last; number++ {
			cached.Follow(number, yield([]written{put(number, fmt.Sprint("of block ", number))}))
		}
		for number := uint64(0); number <= last; number += 3 {
			if got, want := read(cached, number), read(below, number); got != want {
				t.Fatalf("up to block %d: %s, expected %s", number, got, want)
			}
		}
	})
}

// TestFailedReadsAreNotKept: what a read did not find because it failed is not taken for absent.
func TestFailedReadsAreNotKept(t *testing.T) {
	forEachRead(t, func(t *testing.T, read func(kv.Store, uint64) string, below *during, cached *rowcache.Store, _ func(uint64, string) written) {
		below.fail = errors.New("no answer")
		if got := read(cached, 4); !strings.Contains(got, "no answer") {
			t.Errorf("a read that fails: %s", got)
		}
		below.fail = nil
		if got, want := read(cached, 4), read(below, 4); got != want {
			t.Errorf("after a read that failed: %s, expected %s", got, want)
		}
	})
}
