// Package newest caches the newest versions of rows, for stores whose reads take no round trips.
//
// Most questions are about the state as of the last blocks, and a call reads hundreds of its
// rows. A [Cache] answers them from memory, and as of every older block back to the one that
// wrote the row:
//
//	          since                through
//	blocks  ----|---------------------|
//	            newest version of a row, until a block after through writes another
//
// An entry is never wrong, because settled blocks do not change: blocks that a
// reorganization can remove are not in the store. When a block settles, the entries of the
// rows that it wrote are replaced, and all others are valid through that block too.
package newest

import (
	"context"
	"errors"
	"hash/maphash"

	"ashlar/kv"
)

// Cache is a [kv.Reader] that keeps rows of some Versions tables. Reads wait for no write:
// a lock is held while a few entries are looked up or replaced.
type Cache struct {
	kv.Reader
	tables [1 << 8]bool // whose rows are kept, by ID
	seed   maphash.Seed
	shards [shardCount]shard
}

const (
	shardCount = 64
	// maxKey is the maximum length of the key of an entry: the ID of the table and the
	// partition.
	maxKey = 1 + kv.MaxPartition
)

// New returns a cache of rows of the tables in a store, with at most the given bytes of
// memory. It keeps nothing before [Cache.Reset].
func New(below kv.Reader, bytes int64, tables ...*kv.Table) *Cache {
	c := &Cache{Reader: below, seed: maphash.MakeSeed()}
	for _, t := range tables {
		c.tables[t.ID] = true
	}
	c.Resize(bytes)
	return c
}

// Resize drops all entries and changes how many bytes of memory the cache may take.
func (c *Cache) Resize(bytes int64) {
	for i := range c.shards {
		c.shards[i].resize(bytes / shardCount / generations)
	}
}

// Reset drops all entries. Block through is the last one of which rows may be read. A read
// that began before may still be kept, so the blocks up to through must be the same ones: after
// a rewind, a store needs a new cache.
func (c *Cache) Reset(through uint64) {
	for i := range c.shards {
		c.shards[i].reset(through)
	}
}

// shard returns the shard of a key, and the hash by which the shard finds it.
func (c *Cache) shard(key []byte) (*shard, uint64) {
	hash := maphash.Bytes(c.seed, key)
	return &c.shards[hash%shardCount], hash
}

// Newest implements [kv.Reader].
func (c *Cache) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if !c.tables[t.ID] || len(partition) > kv.MaxPartition {
		return c.Reader.Newest(ctx, t, partition, at, dst)
	}
	var room [maxKey]byte
	key := append(append(room[:0], t.ID), partition...)
	s, hash := c.shard(key)
	value, since, found := s.find(hash, key, at, dst)
	if found == hit {
		if since == never {
			return dst, 0, kv.ErrNotFound
		}
		return value, since, nil
	}
	value, since, err := c.Reader.Newest(ctx, t, partition, at, dst)
	switch {
	case found == beyond:
	case err == nil:
		s.keep(hash, key, at, since, value[len(dst):])
	case errors.Is(err, kv.ErrNotFound):
		s.keep(hash, key, at, never, nil)
	}
	return value, since, err
}

// Written is a [kv.Putter] that notes which rows blocks write. It belongs to one goroutine.
type Written struct {
	kv.Putter
	cache *Cache
	rows  []written // nil if the cache was empty: then Settled resets it instead
}

type written struct {
	hash       uint64 // of the key
	key, value []byte
	sort       uint64
}

// Write returns a putter that puts rows to another one and notes them for the cache, which
// may be nil.
func (c *Cache) Write(to kv.Putter) *Written {
	w := &Written{Putter: to, cache: c}
	if c != nil && !c.empty() {
		w.rows = make([]written, 0, 256)
	}
	return w
}

func (c *Cache) empty() bool {
	for i := range c.shards {
		if !c.shards[i].empty() {
			return false
		}
	}
	return true
}

// Put implements [kv.Putter].
func (w *Written) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	w.Putter.Put(t, partition, sort, value)
	if w.rows != nil && w.cache.tables[t.ID] {
		copied := append(append(append(make([]byte, 0, 1+len(partition)+len(value)), t.ID), partition...), value...)
		key, value := copied[:1+len(partition)], copied[1+len(partition):]
		w.rows = append(w.rows, written{maphash.Bytes(w.cache.seed, key), key, value, sort})
	}
}

// Settled makes the entries valid through a block, the last one that has written to w. It
// must be called after the rows are visible in the store, and before a reader asks for rows
// as of one of these blocks. Blocks must have been written in ascending order.
func (w *Written) Settled(through uint64) {
	switch {
	case w.cache == nil:
		return
	case w.rows == nil:
		w.cache.Reset(through)
		return
	}
	var byShard [shardCount][]written
	for _, row := range w.rows {
		byShard[row.hash%shardCount] = append(byShard[row.hash%shardCount], row)
	}
	for i := range byShard {
		w.cache.shards[i].advance(through, byShard[i])
	}
}
