package pebble

import (
	"math"
	"slices"
	"strings"

	"ashlar/kv"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

const (
	// maxMemTableBytes keeps a memtable within what one flush can handle well.
	maxMemTableBytes = 1 << 30
	// blockBytes: twice as much saves 3 % of the disk, and doubles what a read that
	// misses the cache has to unpack: of a chain eight times the cache, receipts and
	// proofs take a fifth more processor time then.
	blockBytes = 16 << 10
	// fullPercent is how much of blockBytes a block has at least when it ends because the next
	// row does not fit. Rows of bodies and receipts often have nearly 16 KiB. With Pebble's 90,
	// a block of 14 KiB takes the next row as well, and a reader of one unpacks both
	// (docs/performance-experiments.md).
	fullPercent = 25
	// indexBlockBytes lets a table of 64 MiB do with an index of one level, which
	// is more than 256 KiB where its blocks shrink to a third and less.
	indexBlockBytes = 1 << 20
	bottomLevel     = 6
	// bulkL0Runs is how many flushed memtables lie on top of each other before
	// they are merged into the levels below, during a bulk load. Filters tell in
	// which of them to look.
	bulkL0Runs = 24
	// levelBytes is the size of the level that flushed memtables are merged into. During a bulk
	// load more of them come at once, and it is larger, so that a store of 10 GiB has no third
	// level that every row passes through.
	levelBytes     = 256 << 20
	bulkLevelBytes = 1 << 30
)

// configure chooses Pebble's options for rows that are written once, rarely
// removed, and read by one seek each.
func configure(o Options, g *guard) *lsm.Options {
	c := &lsm.Options{
		Comparer:           newComparer(),
		FormatMajorVersion: lsm.FormatValueSeparation,
		CacheSize:          o.CacheBytes,
		MemTableSize:       uint64(o.BufferBytes),
		DisableWAL:         o.BulkLoad,
		Logger:             g,
		FS:                 &disk{FS: o.FS, guard: g, apart: o.FS.PathJoin(o.Path, CheckpointFolder)},
		DisableTableStats:  true, // they serve removals, which are rare
		EventListener: &lsm.EventListener{
			BackgroundError: g.background,
			// The reader of a corrupt block gets the error; the rest of the store is still
			// usable.
			DataCorruption: func(i lsm.DataCorruptionInfo) {
				what, _, _ := strings.Cut(i.Details.Error(), "\n") // traces follow
				g.log.Error("corrupt data", "file", i.Path, "error", what)
			},
		},
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                1000,
		// One compaction normally, a second when L0 grows: on a small machine the writers
		// need both cores.
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		L0CompactionThreshold:      4,
		L0StopWritesThreshold:      24,
		LBaseMaxBytes:              levelBytes,
	}
	if o.BulkLoad {
		// A load ends with a Compact, and hardly reads what it has written: rewriting
		// the bottom level again and again on the way is most of what it would do.
		// Pebble begins at half the threshold.
		c.L0CompactionThreshold, c.L0StopWritesThreshold = 2*bulkL0Runs, 6*bulkL0Runs
		c.LBaseMaxBytes = bulkLevelBytes
	}
	if c.CacheSize == 0 {
		c.CacheSize = DefaultCacheBytes
	}
	if c.MemTableSize == 0 {
		c.MemTableSize = DefaultMemTableBytes
		if o.BulkLoad {
			c.MemTableSize = DefaultBulkMemTableBytes
		}
	}
	// A seek that has to change tables costs more, so there are few, large ones.
	c.TargetFileSizes[0] = 8 << 20
	for i := 1; i < len(c.TargetFileSizes); i++ {
		c.TargetFileSizes[i] = 64 << 20
	}
	for i := range c.Levels {
		level := &c.Levels[i]
		level.BlockSize = blockBytes
		level.BlockSizeThreshold = fullPercent
		level.IndexBlockSize = indexBlockBytes
		level.FilterPolicy = bloom.FilterPolicy(10)
		level.Compression = func() *block.CompressionProfile { return compressionOf(i) }
	}
	// Reads must not trigger compactions.
	c.Experimental.ReadSamplingMultiplier = -1
	c.Experimental.SpanPolicyFunc = spanPolicy(o.Tables)
	return c
}

// spanPolicy ends a file where a table begins or ends that is kept apart, and compresses such a
// table lightly. Thorough compression of trie nodes would save 4 % of the disk, and cost a proof that
// misses the cache a sixth more, and a merge a third (docs/performance-experiments.md).
func spanPolicy(tables []*kv.Table) lsm.SpanPolicyFunc {
	var apart []byte // their IDs, ascending
	for _, t := range tables {
		if t.Apart {
			apart = append(apart, t.ID)
		}
	}
	slices.Sort(apart)
	// Pebble would move the values of all rows of a partition but the first out
	// of line, taking them for garbage soon to be; here every version is read.
	others := lsm.SpanPolicy{DisableValueSeparationBySuffix: true}
	lightly := others
	lightly.PreferFastCompression = true
	return func(from []byte) (lsm.SpanPolicy, []byte, error) {
		next, isApart := slices.BinarySearch(apart, from[0])
		switch {
		case isApart && from[0] == math.MaxUint8:
			return lightly, nil, nil
		case isApart:
			return lightly, []byte{from[0] + 1, prefixEnd}, nil
		case next < len(apart):
			return others, []byte{apart[next], prefixEnd}, nil
		}
		return others, nil, nil
	}
}

// compressionOf returns a fast profile for levels with short-lived tables, and a thorough
// one for the levels with most of the data. Similar rows are adjacent, so even plain zstd
// finds the redundancy within a block.
func compressionOf(level int) *block.CompressionProfile {
	if level < bottomLevel-1 {
		return block.FastestCompression
	}
	return block.ZstdCompression
}
