package cassandra

import (
	"context"
	"errors"
	"sync"

	"ashlar/kv"
)

// manyAtOnce bounds the reads that GetMany and NewestMany have under way.
const manyAtOnce = 64

// GetMany implements kv.Reader.
func (s *Store) GetMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, value []byte) error) error {
	return s.many(ctx, t, keys, func(ctx context.Context, k kv.Key) (value []byte, sort uint64, err error) {
		value, err = s.Get(ctx, t, k.Partition, k.Sort, nil)
		return value, k.Sort, err
	}, func(i int, _ uint64, value []byte) error { return found(i, value) })
}

// NewestMany implements kv.Reader.
func (s *Store) NewestMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, sort uint64, value []byte) error) error {
	return s.many(ctx, t, keys, func(ctx context.Context, k kv.Key) (value []byte, sort uint64, err error) {
		return s.Newest(ctx, t, k.Partition, k.Sort, nil)
	}, found)
}

// result is one row of many.
type result struct {
	key   int
	sort  uint64
	value []byte
	err   error
}

// many reads keys side by side and calls found for those that have a row, one at a time.
func (s *Store) many(ctx context.Context, t *kv.Table, keys []kv.Key, read func(context.Context, kv.Key) ([]byte, uint64, error), found func(i int, sort uint64, value []byte) error) error {
	if _, err := s.prepare(ctx, t, nil); err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	next := make(chan int)
	results := make(chan result)
	for range min(manyAtOnce, len(keys)) {
		readers.Go(func() {
			for i := range next {
				value, sort, err := read(reading, keys[i])
				select {
				case results <- result{i, sort, value, err}:
				case <-reading.Done():
					return
				}
			}
		})
	}
	readers.Go(func() {
		defer close(next)
		for i := range keys {
			select {
			case next <- i:
			case <-reading.Done():
				return
			}
		}
	})
	for range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-results:
			if errors.Is(r.err, kv.ErrNotFound) {
				continue
			}
			if r.err != nil {
				return r.err
			}
			if err := found(r.key, r.sort, r.value); err != nil {
				return err
			}
		}
	}
	return nil
}
