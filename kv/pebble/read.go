package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/kv"
)

// begin makes the checks common to all reads.
func (s *Store) begin(ctx context.Context) error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	return ctx.Err()
}

// Get implements kv.Reader.
func (s *Store) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	if err := s.begin(ctx); err != nil {
		return dst, err
	}
	if err := checkRow(t, partition); err != nil {
		return dst, err
	}
	r, err := s.pool.get(t)
	if err != nil {
		return dst, err
	}
	value, err := r.get(t, partition, sort)
	extended := append(dst, value...) // before the reader is reused
	if perr := s.pool.put(r); perr != nil {
		err = perr
	}
	if err != nil {
		return dst, err
	}
	return extended, nil
}

// Newest implements kv.Reader.
func (s *Store) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	if err := s.begin(ctx); err != nil {
		return dst, 0, err
	}
	if err := checkRow(t, partition); err != nil {
		return dst, 0, err
	}
	r, err := s.pool.get(t)
	if err != nil {
		return dst, 0, err
	}
	value, sort, err := r.newest(t, partition, at)
	extended := append(dst, value...) // before the reader is reused
	if perr := s.pool.put(r); perr != nil {
		err = perr
	}
	if err != nil {
		return dst, 0, err
	}
	return extended, sort, nil
}

// Descend implements kv.Reader.
func (s *Store) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := checkRow(t, partition); err != nil {
		return err
	}
	if t.Kind != kv.Versions {
		return fmt.Errorf("kv/pebble: Descend in table %q of kind %d, expected one of Versions", t.Name, t.Kind)
	}
	return s.pool.use(t, func(r *reader) error {
		r.key = appendKey(r.key[:0], t, partition, at)
		for ok := r.seek(); ok; ok = r.Next() {
			value, err := r.ValueAndErr()
			if err != nil {
				return err
			}
			if enough, err := found(sortOf(t.Kind, r.Key()), value); enough || err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

// GetMany implements kv.Reader.
func (s *Store) GetMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, value []byte) error) error {
	return s.many(ctx, t, keys, func(r *reader, i int) error {
		value, err := r.get(t, keys[i].Partition, keys[i].Sort)
		if err != nil {
			return present(err)
		}
		return found(i, value)
	})
}

// NewestMany implements kv.Reader.
func (s *Store) NewestMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, sort uint64, value []byte) error) error {
	return s.many(ctx, t, keys, func(r *reader, i int) error {
		value, sort, err := r.newest(t, keys[i].Partition, keys[i].Sort)
		if err != nil {
			return present(err)
		}
		return found(i, sort, value)
	})
}

// many runs read for each of keys on one reader, so that all of them see the
// same state of the store.
func (s *Store) many(ctx context.Context, t *kv.Table, keys []kv.Key, read func(r *reader, i int) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if len(keys) == 0 {
		return checkTable(t)
	}
	return s.pool.use(t, func(r *reader) error {
		for i := range keys {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := checkRow(t, keys[i].Partition); err != nil {
				return err
			}
			if err := read(r, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// present ignores ErrNotFound.
func present(err error) error {
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	return err
}

// Pointer implements kv.Reader.
func (s *Store) Pointer(ctx context.Context, name string) ([]byte, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if err := checkPointer(name); err != nil {
		return nil, err
	}
	r, err := s.pool.get(pointers)
	if err != nil {
		return nil, err
	}
	r.key = appendPointerKey(r.key[:0], name)
	var value []byte
	err = kv.ErrNotFound
	if r.seek() {
		var stored []byte
		if stored, err = r.ValueAndErr(); err == nil {
			value = append([]byte{}, stored...)
		}
	}
	if perr := s.pool.put(r); perr != nil {
		return nil, perr
	}
	return value, err
}

// seek moves to the first row at or behind r.key that is in its partition.
//
// If the partition is after the one sought before, Pebble assumes that it is close, and
// steps through up to four blocks before using the index. Random reads nearly always waste
// that work. A preceding step backwards, which fails at once within a prefix, disables
// this.
func (r *reader) seek() bool {
	if r.inPrefix {
		r.Prev()
	}
	r.inPrefix = true
	return r.SeekPrefixGE(r.key)
}

// seekBehind moves to the last row before r.key, of whatever partition.
func (r *reader) seekBehind() bool {
	r.inPrefix = false
	return r.SeekLT(r.key)
}

// missing says why a move has led to no row: the store could not be read, or there
// is none.
func (r *reader) missing() error {
	if err := r.Error(); err != nil {
		return fmt.Errorf("kv/pebble: %w", err)
	}
	return kv.ErrNotFound
}

// get returns the value of one row, valid until the reader moves.
func (r *reader) get(t *kv.Table, partition []byte, sort uint64) ([]byte, error) {
	r.key = appendKey(r.key[:0], t, partition, sort)
	if !r.seek() || !bytes.Equal(r.Key(), r.key) {
		return nil, r.missing()
	}
	return r.ValueAndErr()
}

// newest returns the row with the greatest sort key at or below at; its value is
// valid until the reader moves.
func (r *reader) newest(t *kv.Table, partition []byte, at uint64) ([]byte, uint64, error) {
	if t.Kind != kv.Versions {
		return r.newestAscending(t, partition, at)
	}
	r.key = appendKey(r.key[:0], t, partition, at)
	if !r.seek() {
		return nil, 0, r.missing()
	}
	value, err := r.ValueAndErr()
	return value, sortOf(t.Kind, r.Key()), err
}

// newestAscending is newest where rows ascend: it goes backwards, without the
// help of filters.
func (r *reader) newestAscending(t *kv.Table, partition []byte, at uint64) ([]byte, uint64, error) {
	if !r.seekBefore(t, partition, at) {
		return nil, 0, r.missing()
	}
	value, err := r.ValueAndErr()
	return value, sortOf(t.Kind, r.Key()), err
}

// seekBefore moves to the last row of the partition, in the order of storage,
// that is not behind sort: the greatest sort key at or below it in a List table,
// the least at or above it in a Versions table. It says whether there is one.
func (r *reader) seekBefore(t *kv.Table, partition []byte, sort uint64) bool {
	r.key = appendKey(r.key[:0], t, partition, sort)
	prefix := r.key[:len(r.key)-suffixLen]
	if r.key = increment(r.key, len(prefix)); !r.seekBehind() {
		return false
	}
	return inPartition(r.Key(), r.key, len(prefix))
}

// increment turns a row's key with a prefix of n bytes into the least key above
// it that keeps this prefix or, after the partition's last, into the next prefix.
func increment(key []byte, n int) []byte {
	for i := n + 7; i >= n; i-- {
		key[i]++
		if key[i] != 0 {
			return key
		}
	}
	return append(key[:n], prefixEnd)
}

// inPartition reports whether the row key begins with the first n bytes of prefix
// and nothing else before its suffix.
func inPartition(key, prefix []byte, n int) bool {
	return len(key) == n+suffixLen && bytes.Equal(key[:n], prefix[:n])
}
