package kv

import (
	"context"
	"iter"
	"sync/atomic"
)

// Want names rows that are going to be read: up to Newest rows of a partition from To
// downwards, as by Newest or Descend, or, if Newest is 0, the rows with From <= sort <= To,
// as by Get or Scan.
type Want struct {
	Table     *Table
	Partition []byte
	From, To  uint64
	Newest    int
}

// WantRow is the Want of one row that is named in full.
func WantRow(t *Table, partition []byte, sort uint64) Want {
	return Want{Table: t, Partition: partition, From: sort, To: sort}
}

// Distant is implemented by readers for which a read takes a round trip, so that several reads are
// faster side by side.
type Distant interface {
	Distant()
}

// Prefetcher is implemented by readers for which a read takes a round trip ([Distant]), and which keep
// what they have read.
type Prefetcher interface {
	// Prefetch makes reads side by side, so that later reads of the same rows need not wait.
	// It may make fewer. It returns no error: a read that fails here fails again later.
	Prefetch(ctx context.Context, wants []Want)
}

type (
	asideKey struct{}
	waitsKey struct{}
)

// Aside returns a context for reads that nothing waits for: they are made only so that a later read of the same rows need not
// wait. Statistics do not count them as waits.
func Aside(ctx context.Context) context.Context { return context.WithValue(ctx, asideKey{}, true) }

// IsAside reports whether a context is one for reads that nothing waits for.
func IsAside(ctx context.Context) bool { return ctx.Value(asideKey{}) != nil }

// CountWaits returns a context that adds to waits how often its reads wait for a round trip.
func CountWaits(ctx context.Context, waits *atomic.Int64) context.Context {
	return context.WithValue(ctx, waitsKey{}, waits)
}

// Waited is for a [Prefetcher], which calls it for each wait of a read.
func Waited(ctx context.Context) {
	if waits, ok := ctx.Value(waitsKey{}).(*atomic.Int64); ok {
		waits.Add(1)
	}
}

// Follower is implemented by stores that keep rows which another process has written, and
// must know how far they are settled.
type Follower interface {
	// Follow says that all rows of blocks up to block are written, and will not change.
	// rows yields those of the blocks after the one of the last call, or is nil if they
	// are not known.
	Follow(block uint64, rows iter.Seq2[*Table, Row])
}
