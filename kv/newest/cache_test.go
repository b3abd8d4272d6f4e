package newest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"ashlar/kv"
	"ashlar/kv/packed"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

var (
	kept  = &kv.Table{ID: 1, Name: "kept", Kind: kv.Versions}
	other = &kv.Table{ID: 2, Name: "other", Kind: kv.Versions}
)

const (
	modelKeys   = 200
	modelBlocks = 60
)

func partitionOf(key uint64) []byte { return binary.BigEndian.AppendUint64(nil, key) }

// wrote reports whether a block of the model wrote a row. Some keys are written often, some
// never.
func wrote(key, block uint64) bool {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(partitionOf(key), block))
	return key%7 != 0 && h.Sum64()%(1+key%20) == 0
}

func valueOf(key, block uint64) string {
	return fmt.Sprint("value ", key, " of block ", block)[:6+(key+block)%8]
}

// newestOf returns the block that wrote the newest version of a row as of another block.
func newestOf(key, at uint64) (uint64, bool) {
	for block := int64(at); block >= 0; block-- {
		if wrote(key, uint64(block)) {
			return uint64(block), true
		}
	}
	return 0, false
}

func openStore(t *testing.T) kv.Store {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "data", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// settle writes blocks of the model.
func settle(ctx context.Context, store kv.Store, c *Cache, from, to uint64) error {
	batch := store.NewBatch()
	w := c.Write(batch)
	for block := from; block <= to; block++ {
		for key := range uint64(modelKeys) {
			if wrote(key, block) {
				w.Put(kept, partitionOf(key), block, []byte(valueOf(key, block)))
				w.Put(other, partitionOf(key), block, nil)
			}
		}
	}
	if err := store.Write(ctx, batch); err != nil {
		return err
	}
	w.Settled(to)
	return nil
}

// check reads a row through the cache and compares it with the model.
func check(ctx context.Context, c *Cache, key, at uint64) error {
	value, since, err := c.Newest(ctx, kept, partitionOf(key), at, []byte("before "))
	block, exists := newestOf(key, at)
	switch {
	case !exists && errors.Is(err, kv.ErrNotFound) && string(value) == "before ":
		return nil
	case !exists || err != nil:
		return fmt.Errorf("row %d as of block %d: %q of block %d, %v (exists: %v)", key, at, value, since, err, exists)
	case string(value) != "before "+valueOf(key, block) || since != block:
		return fmt.Errorf("row %d as of block %d: %q of block %d, expected %q of block %d", key, at, value, since, valueOf(key, block), block)
	}
	return nil
}

// Readers ask about the last block and older ones while blocks settle in groups. Small
// caches evict all the time, the large one never does.
func TestReadersAndWriter(t *testing.T) {
	for _, bytes := range []int64{0, 64 << 10, 1 << 20} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			store := openStore(t)
			c := New(store, bytes, kept)
			c.Reset(0)
			if err := settle(t.Context(), store, c, 0, 0); err != nil {
				t.Fatal(err)
			}
			var settled atomic.Uint64
			group, ctx := errgroup.WithContext(t.Context())
			for reader := range uint64(3) {
				group.Go(func() error {
					r := rand.New(rand.NewPCG(reader, 1))
					for last := uint64(0); last < modelBlocks; {
						last = settled.Load()
						at := last
						if r.IntN(3) == 0 {
							at = r.Uint64N(last + 1)
						}
						if err := check(ctx, c, r.Uint64N(modelKeys), at); err != nil {
							return err
						}
					}
					return nil
				})
			}
			group.Go(func() error {
				r := rand.New(rand.NewPCG(9, 9))
				for last := uint64(0); last < modelBlocks; {
					to := min(modelBlocks, last+1+r.Uint64N(3))
					if err := settle(ctx, store, c, last+1, to); err != nil {
						return err
					}
					settled.Store(to)
					last = to
					for range 50 { // some reads between two blocks
						if err := check(ctx, c, r.Uint64N(modelKeys), last); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// counting counts the reads that reach the store.
type counting struct {
	kv.Reader
	reads int
}

func (r *counting) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	r.reads++
	return r.Reader.Newest(ctx, t, partition, at, dst)
}

// What was read as of the last block is not read again: not as of that block, nor as of older
// blocks with the same version, nor after blocks that write it.
func TestReadsOnce(t *testing.T) {
	store := openStore(t)
	below := &counting{Reader: store}
	c := New(below, 1<<20, kept)
	c.Reset(0)
	if err := settle(t.Context(), store, c, 0, 10); err != nil {
		t.Fatal(err)
	}
	all := func(at uint64) int {
		t.Helper()
		before := below.reads
		for key := range uint64(modelKeys) {
			if err := check(t.Context(), c, key, at); err != nil {
				t.Fatal(err)
			}
		}
		return below.reads - before
	}
	if reads := all(10); reads != modelKeys {
		t.Errorf("%d reads of the store for the first look at %d rows", reads, modelKeys)
	}
	if reads := all(10); reads != 0 {
		t.Errorf("%d reads of the store for the second look", reads)
	}
	changed := 0
	for key := range uint64(modelKeys) {
		if newest, exists := newestOf(key, 10); exists && newest > 8 {
			changed++
		}
	}
	if reads := all(8); reads != changed {
		t.Errorf("%d reads of the store as of an older block, expected one for each of the %d rows written since", reads, changed)
	}
	if err := settle(t.Context(), store, c, 11, 13); err != nil {
		t.Fatal(err)
	}
	if reads := all(13); reads != 0 {
		t.Errorf("%d reads of the store after three blocks", reads)
	}
	if _, _, err := c.Newest(t.Context(), other, partitionOf(1), 13, nil); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Newest(t.Context(), other, partitionOf(1), 13, nil); err != nil {
		t.Error(err)
	}
	if got := below.reads; got != modelKeys+changed+2 {
		t.Errorf("%d reads, expected two more for a table that is not kept", got)
	}
}

// The memory stays within the limit, whatever is read, and long keys use most of it.
func TestBounded(t *testing.T) {
	store := openStore(t)
	const limit, keyBytes = 1 << 20, 1 + 64
	c := New(store, limit, kept)
	c.Reset(0)
	for key := range uint64(50_000) {
		_, _, err := c.Newest(t.Context(), kept, append(make([]byte, keyBytes-1-8), partitionOf(key)...), 0, nil)
		if !errors.Is(err, kv.ErrNotFound) {
			t.Fatal(err)
		}
	}
	entries, memory := c.size()
	if memory > limit || memory < limit*9/10 {
		t.Errorf("%d bytes, expected at most %d", memory, limit)
	}
	if most := limit / (packed.HeaderBytes + keyBytes); entries > most || entries < most/3 {
		t.Errorf("%d entries in %d bytes, expected at most %d", entries, limit, most)
	}
}

// size returns how many entries there are in both generations, and the memory for them.
func (c *Cache) size() (entries, memory int) {
	for i := range c.shards {
		for _, g := range []*packed.Rows{&c.shards[i].young, &c.shards[i].old} {
			entries += g.Len()
			memory += g.Bytes()
		}
	}
	return entries, memory
}

// writeThrough writes a row of partition 1 to the store, and returns what the cache has to learn of it.
func writeThrough(t *testing.T, store kv.Store, c *Cache, block uint64, value []byte) *Written {
	t.Helper()
	batch := store.NewBatch()
	w := c.Write(batch)
	w.Put(kept, partitionOf(1), block, value)
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return w
}

// A row that no longer fits is not answered as it was before.
func TestTooLarge(t *testing.T) {
	store := openStore(t)
	c := New(store, shardCount*generations*512, kept)
	c.Reset(0)
	writeThrough(t, store, c, 0, []byte("small")).Settled(0)
	for block, length := range []int{5, 6, 300, 600, 700, 3, 4, 1 << 17, 1} {
		if got, since, err := c.Newest(t.Context(), kept, partitionOf(1), uint64(block), nil); err != nil || since != uint64(block) {
			t.Errorf("block %d: version of block %d with %d bytes, %v", block, since, len(got), err)
		}
		value := bytes.Repeat([]byte{byte(block)}, length)
		writeThrough(t, store, c, uint64(block)+1, value).Settled(uint64(block) + 1)
		if got, _, err := c.Newest(t.Context(), kept, partitionOf(1), uint64(block)+1, nil); err != nil || !bytes.Equal(got, value) {
			t.Errorf("block %d: %d bytes, %v, expected %d", block+1, len(got), err, length)
		}
	}
}

// failing is a reader of which the next read fails.
type failing struct {
	kv.Reader
	err error
}

func (f *failing) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if err := f.err; err != nil {
		f.err = nil
		return dst, 0, err
	}
	return f.Reader.Newest(ctx, t, partition, at, dst)
}

// TestErrorsAreNotKept: after a read that failed, the row is read again, and not taken as missing.
func TestErrorsAreNotKept(t *testing.T) {
	store := openStore(t)
	c := New(&failing{store, context.Canceled}, shardCount*generations*512, kept)
	c.Reset(0)
	batch := store.NewBatch()
	batch.Put(kept, partitionOf(1), 0, []byte("value"))
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.Newest(t.Context(), kept, partitionOf(1), 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v, expected the error of the read", got, err)
	}
	if got, _, err := c.Newest(t.Context(), kept, partitionOf(1), 0, nil); err != nil || string(got) != "value" {
		t.Errorf("after a read that failed: %q, %v", got, err)
	}
}

// TestOldGeneration: an entry of the old generation is not taken for the newest version when a block
// has replaced it by one that is not kept, after a reset, or as of a block after those of the cache.
func TestOldGeneration(t *testing.T) {
	for name, settled := range map[string]func(w *Written){
		"too large": func(w *Written) { w.Settled(1) },
		"reset":     func(w *Written) { w.cache.Reset(1) },
		"beyond":    func(*Written) {},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			c := New(store, shardCount*generations*512, kept)
			c.Reset(0)
			read := func(at uint64, want []byte) {
				t.Helper()
				if got, since, err := c.Newest(t.Context(), kept, partitionOf(1), at, nil); err != nil || since != at || !bytes.Equal(got, want) {
					t.Errorf("as of block %d: %d bytes of block %d, %v, expected %d", at, len(got), since, err, len(want))
				}
			}
			writeThrough(t, store, c, 0, []byte("small")).Settled(0)
			read(0, []byte("small"))
			for i := range c.shards {
				s := &c.shards[i]
				s.young, s.old = s.old, s.young
			}
			large := bytes.Repeat([]byte{1}, 600)
			settled(writeThrough(t, store, c, 1, large))
			read(1, large)
		})
	}
}
