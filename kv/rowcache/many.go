package rowcache

import (
	"context"

	"ashlar/kv"

	"golang.org/x/sync/errgroup"
)

// GetMany implements kv.Reader.
func (s *Store) GetMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, value []byte) error) error {
	missing := make([]kv.Key, 0, len(keys))
	places := make([]int, 0, len(keys))
	for i, k := range keys {
		p, ok := s.look(ctx, t, k.Partition, k.Sort)
		if !ok {
			missing, places = append(missing, k), append(places, i)
			continue
		}
		if j := p.find(k.Sort); j < len(p.rows) && p.rows[j].sort == k.Sort {
			if err := found(i, p.rows[j].value); err != nil {
				return err
			}
		}
	}
	if len(missing) == 0 {
		return ctx.Err()
	}
	m := s.begin(ctx)
	s.missed(ctx, len(missing))
	return s.Store.GetMany(ctx, t, missing, func(j int, value []byte) error {
		value = append([]byte{}, value...)
		k := missing[j]
		s.keep(m, t, k.Partition, span{from: k.Sort, to: k.Sort, rows: []row{{k.Sort, value}}})
		return found(places[j], value)
	})
}

// NewestMany implements kv.Reader.
func (s *Store) NewestMany(ctx context.Context, t *kv.Table, keys []kv.Key, found func(i int, sort uint64, value []byte) error) error {
	missing := make([]kv.Key, 0, len(keys))
	places := make([]int, 0, len(keys))
	for i, k := range keys {
		known, exists, ok := s.newest(ctx, t, k.Partition, k.Sort)
		if !ok {
			missing, places = append(missing, k), append(places, i)
			continue
		}
		if exists {
			if err := found(i, known.sort, known.value); err != nil {
				return err
			}
		}
	}
	if len(missing) == 0 {
		return ctx.Err()
	}
	m := s.begin(ctx)
	s.missed(ctx, len(missing))
	seen := make([]bool, len(missing))
	err := s.Store.NewestMany(ctx, t, missing, func(j int, sort uint64, value []byte) error {
		seen[j] = true
		value = append([]byte{}, value...)
		s.keepNewest(m, t, missing[j].Partition, missing[j].Sort, sort, value, true)
		return found(places[j], sort, value)
	})
	if err != nil {
		return err
	}
	for j, k := range missing {
		if !seen[j] {
			s.keepNewest(m, t, k.Partition, k.Sort, 0, nil, false)
		}
	}
	return nil
}

const (
	prefetchAtOnce = 256      // reads under way: as many as the rows of 64 blocks with logs
	asideAtOnce    = 1024     // reads under way for all prefetches for which nothing waits: a request can make many of these at once
	prefetchRows   = 1024     // of a range
	prefetchBytes  = 64 << 10 // of a range
)

// Prefetch implements kv.Prefetcher.
func (s *Store) Prefetch(ctx context.Context, wants []kv.Want) {
	var missing []*kv.Want
	for i := range wants {
		if w := &wants[i]; !s.has(ctx, w) {
			missing = append(missing, w)
		}
	}
	aside := kv.IsAside(ctx)
	if len(missing) == 0 || len(missing) == 1 && !aside {
		return // nothing to make side by side
	}
	if !aside {
		s.waited(ctx)
		ctx = kv.Aside(ctx)
	}
	var group errgroup.Group
	group.SetLimit(prefetchAtOnce)
	for _, w := range missing {
		if !aside {
			group.Go(func() error { s.fetch(ctx, w); return nil })
			continue
		}
		if s.aside.Acquire(ctx, 1) != nil {
			break
		}
		group.Go(func() error {
			defer s.aside.Release(1)
			s.fetch(ctx, w)
			return nil
		})
	}
	_ = group.Wait() // a read that fails is made again
}

// begins returns the sort key with which the read of w begins.
func begins(w *kv.Want) uint64 {
	if w.Newest > 0 {
		return w.To
	}
	return w.From
}

// has reports whether the rows of w, or the first of them, are known.
func (s *Store) has(ctx context.Context, w *kv.Want) bool {
	at := begins(w)
	p, ok := s.find(ctx, w.Table, w.Partition, at, false)
	return ok && (w.Newest == 0 || p.from == 0 || len(p.upTo(at)) > 0)
}

// fetch reads the rows of w. What it reads is kept.
func (s *Store) fetch(ctx context.Context, w *kv.Want) {
	switch {
	case w.Newest == 1:
		_, _, _ = s.Newest(ctx, w.Table, w.Partition, w.To, nil)
	case w.From == w.To && w.Newest == 0:
		_, _ = s.Get(ctx, w.Table, w.Partition, w.From, nil)
	default:
		s.fetchSeveral(ctx, w)
	}
}

// fetchSeveral is fetch for more than one row.
func (s *Store) fetchSeveral(ctx context.Context, w *kv.Want) {
	joined, ended := s.join(ctx, w.Table, w.Partition, begins(w), severalRows, true)
	defer ended()
	switch {
	case joined && s.has(ctx, w):
	case w.Newest > 0:
		n := 0
		_ = s.descendBelow(ctx, w.Table, w.Partition, w.To, func(uint64, []byte) (bool, error) {
			n++
			return n == w.Newest, nil
		})
	default:
		rows, size := s.Scan(ctx, w.Table, w.Partition, w.From, w.To), 0
		for n := 0; n < prefetchRows && size < prefetchBytes && rows.Next(); n++ {
			size += len(rows.Value())
		}
		_ = rows.Close()
	}
}
