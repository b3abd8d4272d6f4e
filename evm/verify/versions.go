package verify

import (
	"bytes"
	"context"
	"math"
	"sync"

	"ashlar/history/audit"
	"ashlar/kv"

	"golang.org/x/sync/errgroup"
)

// version is the value of a partition over a range of blocks.
type version struct {
	partition []byte
	value     []byte // empty: deleted
	from      uint64 // block of the row
	until     uint64 // block of the next row; MaxUint64 if there is none
	repeats   bool   // the value is that of the previous row, so the row is superfluous
}

// rowSeq are the rows of a walk.
type rowSeq = func(yield func(kv.Row, error) bool)

// stepVersions calls next with every version in a table of versions. In walk, the rows of a
// partition must be adjacent, ascending or descending. The version is valid only during the
// call.
func stepVersions(walk rowSeq, next func(version) error) error {
	var held version // the previous row, as long as only one of its neighbours is known
	oldest, any := true, false
	release := func() error {
		if !any {
			return nil
		}
		if oldest {
			held.repeats = len(held.value) == 0
		}
		return next(held)
	}
	for row, err := range walk {
		if err != nil {
			return err
		}
		following := version{from: row.Sort, until: math.MaxUint64}
		followingOldest := true
		if any && bytes.Equal(row.Partition, held.partition) {
			same := bytes.Equal(row.Value, held.value)
			if row.Sort < held.from {
				following.until, held.repeats, oldest = held.from, same, false
			} else {
				held.until, following.repeats, followingOldest = row.Sort, same, false
			}
		}
		if err := release(); err != nil {
			return err
		}
		following.partition = append(held.partition[:0], row.Partition...)
		following.value = append(held.value[:0], row.Value...)
		held, oldest, any = following, followingOldest, true
	}
	return release()
}

// versionBatch is a batch of versions for a worker, with the bytes that they reference.
type versionBatch struct {
	versions []version
	bytes    []byte
}

// batchBytes is the capacity of a batch. A larger version has a batch of its own.
const batchBytes = 256 << 10

func (b *versionBatch) add(v version) (fits bool) {
	if need := len(v.partition) + len(v.value); len(b.versions) > 0 && len(b.bytes)+need > cap(b.bytes) {
		return false
	} else if b.bytes == nil {
		b.bytes = make([]byte, 0, max(batchBytes, need))
	}
	at := len(b.bytes)
	b.bytes = append(append(b.bytes, v.partition...), v.value...)
	v.partition = b.bytes[at : at+len(v.partition) : at+len(v.partition)]
	v.value = b.bytes[at+len(v.partition):]
	b.versions = append(b.versions, v)
	return true
}

// eachVersion calls check with every version in a table, on all processors. Each worker has
// a fork of l, which is joined in the end. If there are findings, eachVersion returns the
// one about the lowest block.
func (c *checker) eachVersion(ctx context.Context, t *kv.Table, l *audit.Ledger, check func(ctx context.Context, l *audit.Ledger, v version) error) error {
	batches := make(chan *versionBatch, c.Workers())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(batches)
		batch := new(versionBatch)
		send := func() error {
			select {
			case batches <- batch:
				batch = new(versionBatch)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := stepVersions(c.Walk(ctx, t), func(v version) error {
			if batch.add(v) {
				return nil
			}
			if err := send(); err != nil {
				return err
			}
			batch.add(v)
			return nil
		})
		if err != nil {
			return err
		}
		return send()
	})
	var joining sync.Mutex
	lowest := new(audit.LowestFinding)
	for range c.Workers() {
		own := l.Fork()
		group.Go(func() error {
			for batch := range batches {
				for _, v := range batch.versions {
					if err := lowest.Take(check(ctx, own, v)); err != nil {
						return err
					}
				}
			}
			joining.Lock()
			defer joining.Unlock()
			l.Join(own)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return lowest.Err()
}
