package rowcache

import (
	"context"
	"errors"

	"ashlar/kv"
)

// Distant implements kv.Distant.
func (s *Store) Distant() {}

// Get implements kv.Reader.
func (s *Store) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	p, ok := s.look(ctx, t, partition, sort)
	if !ok {
		joined, ended := s.join(ctx, t, partition, sort, oneRow, true)
		defer ended()
		if joined {
			p, ok = s.look(ctx, t, partition, sort)
		}
	}
	if ok {
		if i := p.find(sort); i < len(p.rows) && p.rows[i].sort == sort {
			return append(dst, p.rows[i].value...), ctx.Err()
		}
		return dst, kv.ErrNotFound
	}
	m := s.begin(ctx)
	s.missed(ctx, 1)
	value, err := s.Store.Get(ctx, t, partition, sort, nil)
	if err != nil {
		return dst, err
	}
	s.keep(m, t, partition, span{from: sort, to: sort, rows: []row{{sort, value}}})
	return append(dst, value...), nil
}

// Newest implements kv.Reader.
func (s *Store) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	known, found, ok := s.newest(ctx, t, partition, at)
	if !ok && !named(t) {
		joined, ended := s.join(ctx, t, partition, at, oneRow, true)
		defer ended()
		if joined {
			known, found, ok = s.newest(ctx, t, partition, at)
		}
	}
	if ok {
		if !found {
			return dst, 0, kv.ErrNotFound
		}
		return append(dst, known.value...), known.sort, ctx.Err()
	}
	m := s.begin(ctx)
	s.missed(ctx, 1)
	value, sort, err := s.Store.Newest(ctx, t, partition, at, nil)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return dst, 0, err
	}
	s.keepNewest(m, t, partition, at, sort, value, err == nil)
	if err != nil {
		return dst, 0, err
	}
	return append(dst, value...), sort, nil
}

// newest returns the newest row at or below at; ok says whether that is known.
func (s *Store) newest(ctx context.Context, t *kv.Table, partition []byte, at uint64) (r row, found, ok bool) {
	if named(t) {
		return r, false, false
	}
	p, ok := s.look(ctx, t, partition, at)
	if !ok {
		return r, false, false
	}
	rows := p.upTo(at)
	if len(rows) == 0 {
		return r, false, p.from == 0
	}
	return rows[len(rows)-1], true, true
}

// keepNewest records the answer of Newest.
func (s *Store) keepNewest(m mark, t *kv.Table, partition []byte, at, sort uint64, value []byte, found bool) {
	if named(t) {
		return
	}
	p := span{to: at}
	if found {
		p.from, p.rows = sort, []row{{sort, value}}
	}
	s.keep(m, t, partition, p)
}

// Descend implements kv.Reader.
func (s *Store) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	at, ended, err := s.descendKnown(ctx, t, partition, at, found)
	if !ended { // nobody waits for this read, because found may read
		if joined, _ := s.join(ctx, t, partition, at, severalRows, false); joined {
			at, ended, err = s.descendKnown(ctx, t, partition, at, found)
		}
	}
	if ended {
		return err
	}
	return s.descendBelow(ctx, t, partition, at, found)
}

// descendBelow is Descend that reads the store.
func (s *Store) descendBelow(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	m := s.begin(ctx)
	s.missed(ctx, 1)
	read, ended := span{to: at}, true
	err := s.Store.Descend(ctx, t, partition, at, func(sort uint64, value []byte) (bool, error) {
		value = append([]byte{}, value...)
		read.rows = append(read.rows, row{sort, value})
		enough, err := found(sort, value)
		ended = !enough
		return enough, err
	})
	if err != nil {
		return err
	}
	for i, j := 0, len(read.rows)-1; i < j; i, j = i+1, j-1 {
		read.rows[i], read.rows[j] = read.rows[j], read.rows[i]
	}
	if !ended {
		read.from = read.rows[0].sort
	}
	if t.Kind == kv.Versions {
		s.keep(m, t, partition, read)
	}
	return nil
}

// descendKnown is Descend for the rows that are known. If it has not ended, next is where the unknown ones begin.
func (s *Store) descendKnown(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) (next uint64, ended bool, err error) {
	for {
		p, ok := s.look(ctx, t, partition, at)
		if !ok {
			return at, false, nil
		}
		rows := p.upTo(at)
		for i := len(rows) - 1; i >= 0; i-- {
			if enough, err := found(rows[i].sort, rows[i].value); enough || err != nil {
				return at, true, err
			}
			if err := ctx.Err(); err != nil {
				return at, true, err
			}
		}
		if p.from == 0 {
			return at, true, nil
		}
		at = p.from - 1
	}
}
