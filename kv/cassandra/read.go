package cassandra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"
)

// found is a row as it was read.
type found struct {
	sort  uint64
	value *[]byte // nil in the mark of a partition with several parts (split.go)
	until *int64  // start of the next part, if there is one
}

// prepare checks a read, and returns the statements of its table. Reads do not copy the partition: an attempt at another
// node may send what the caller has changed since, but only after the read has returned, so its result is discarded.
func (s *Store) prepare(ctx context.Context, t *kv.Table, partition []byte) (*statements, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if err := checkRow(t, partition); err != nil {
		return nil, err
	}
	return s.cluster.table(t), nil
}

// query returns a read that a second node is asked for if the first is slow.
func (s *Store) query(statement string, args ...any) *gocql.Query {
	s.reads.Add(1)
	return s.cluster.session.Query(statement, args...).SetSpeculativeExecutionPolicy(s.cluster.speculation)
}

// reading is how rows are read: from how many replicas, and how long that is tried.
type reading struct {
	level    gocql.Consistency
	patience time.Duration
}

// byQuorum is how rows are read that a Write has made visible.
func (s *Store) byQuorum() reading { return reading{s.cluster.quorum, s.cluster.config.readPatience} }

// rows reads rows, and calls take for each. What take keeps must be discarded when reset
// is called, before another attempt. A table that was never created has no rows.
func (s *Store) rows(ctx context.Context, how reading, st *statements, q *gocql.Query, reset func(), take func(found)) error {
	q.Consistency(how.level)
	err := s.cluster.retry(ctx, how.patience, func(ctx context.Context) error {
		reset()
		rows := q.IterContext(ctx)
		for {
			var sort int64
			var f found
			if !rows.Scan(&sort, &f.value, &f.until) {
				return rows.Close()
			}
			f.sort = sortOf(sort)
			take(f)
		}
	})
	return s.orNoTable(ctx, st, err)
}

// orNoTable returns nil instead of the error of a read from a table that was never created.
// A node that has not learned of the table yet does not make it absent.
func (s *Store) orNoTable(ctx context.Context, st *statements, err error) error {
	if !errors.Is(err, errNoTable) {
		return err
	}
	exists, checkErr := s.cluster.recorded(ctx, st.name)
	if checkErr != nil {
		return checkErr
	}
	if exists {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	return nil
}

// Distant implements kv.Distant.
func (s *Store) Distant() {}

// Get implements kv.Reader. A row that one replica has is the row, because rows do not
// change. Only a quorum can say that there is none.
func (s *Store) Get(ctx context.Context, t *kv.Table, partition []byte, sort uint64, dst []byte) ([]byte, error) {
	st, err := s.prepare(ctx, t, partition)
	if err != nil {
		return dst, err
	}
	partition = notNil(partition)
	starts, complete := s.splits.known(t, partition)
	if !t.Transient { // partitions of a transient table are removed, which one replica may have missed
		value, err := s.getPart(ctx, st, s.cluster.one, partition, partOf(starts, sort), sort)
		if !errors.Is(err, kv.ErrNotFound) {
			return append(dst, value...), err
		}
	}
	if complete || t.Transient {
		value, err := s.getPart(ctx, st, s.cluster.quorum, partition, partOf(starts, sort), sort)
		return append(dst, value...), err
	}
	value, err := s.getAnywhere(ctx, st, t, partition, partOf(starts, sort), sort)
	return append(dst, value...), err
}

// getAnywhere reads a row that is in a part, if the parts are as they are known. It looks up
// whether they are at the same time.
func (s *Store) getAnywhere(ctx context.Context, st *statements, t *kv.Table, partition []byte, part int, sort uint64) (value []byte, err error) {
	var now []uint64
	var group errgroup.Group
	group.Go(func() (err error) {
		now, err = s.partsOf(ctx, t, partition)
		return err
	})
	value, err = s.getPart(ctx, st, s.cluster.quorum, partition, part, sort)
	if failed := group.Wait(); failed != nil {
		return nil, failed
	}
	if actual := partOf(now, sort); actual != part && errors.Is(err, kv.ErrNotFound) {
		return s.getPart(ctx, st, s.cluster.quorum, partition, actual, sort)
	}
	return value, err
}

// getPart reads a row from one part of a partition.
func (s *Store) getPart(ctx context.Context, st *statements, level gocql.Consistency, partition []byte, part int, sort uint64) (value []byte, err error) {
	query := s.query(st.get, s.id, partition, part, sortColumn(sort)).Consistency(level)
	var read *[]byte
	err = s.cluster.scan(ctx, query, &read)
	if err = s.orNoTable(ctx, st, err); err == nil && read == nil {
		err = kv.ErrNotFound // no such table, or a mark
	}
	if err != nil {
		return nil, err
	}
	return *read, nil
}

// Newest implements kv.Reader.
func (s *Store) Newest(ctx context.Context, t *kv.Table, partition []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	st, err := s.prepare(ctx, t, partition)
	if err != nil {
		return dst, 0, err
	}
	row, err := s.newest(ctx, st, t, notNil(partition), at)
	if err != nil {
		return dst, 0, err
	}
	return append(dst, *row.value...), row.sort, nil
}

// newest returns the row with the greatest sort key at or below at.
func (s *Store) newest(ctx context.Context, st *statements, t *kv.Table, partition []byte, at uint64) (found, error) {
	starts, certain := s.splits.known(t, partition)
	for part := partOf(starts, at); ; {
		rows, err := s.descendPart(ctx, s.byQuorum(), st, partition, part, at, 1)
		if err != nil {
			return found{}, err
		}
		if !certain && mayGoOn(rows, part, at) {
			if starts, err = s.partsOf(ctx, t, partition); err != nil {
				return found{}, err
			}
			certain = true
			if later := partOf(starts, at); later != part {
				part = later
				continue
			}
		}
		switch {
		case len(rows) > 0:
			return rows[0].orMissing()
		case part == 0:
			return found{}, kv.ErrNotFound
		}
		part, certain = part-1, true // no part after this one has an older row
	}
}

// mayGoOn reports whether a partition may have parts after the last one that is known, from which rows were read downwards
// from at. A part with rows says so. One whose rows were all removed does not; part 0 is never left without one if there are
// others.
func mayGoOn(rows []found, part int, at uint64) bool {
	if len(rows) == 0 {
		return part > 0
	}
	return rows[0].until != nil && sortColumn(at) >= *rows[0].until
}

// orMissing returns the row, or kv.ErrNotFound for a mark, below which there is no row.
func (f found) orMissing() (found, error) {
	if f.value == nil {
		return found{}, kv.ErrNotFound
	}
	return f, nil
}

// descendPart returns up to limit rows of one part, from at downwards.
func (s *Store) descendPart(ctx context.Context, how reading, st *statements, partition []byte, part int, at uint64, limit int) (rows []found, err error) {
	query := s.query(st.newest, s.id, partition, part, sortColumn(at), limit)
	err = s.rows(ctx, how, st, query, func() { rows = rows[:0] }, func(f found) { rows = append(rows, f) })
	return rows, err
}

// descendFirst is the number of rows that Descend reads first: a trie node and the
// differences that lead to it.
const descendFirst = 8

// Descend implements kv.Reader.
func (s *Store) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	return s.descend(ctx, s.byQuorum(), t, partition, at, found)
}

func (s *Store) descend(ctx context.Context, how reading, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	st, err := s.prepare(ctx, t, partition)
	if err != nil {
		return err
	}
	if t.Kind != kv.Versions {
		return fmt.Errorf("kv/cassandra: Descend in table %q of kind %d (want one of Versions)", t.Name, t.Kind)
	}
	partition = notNil(partition)
	starts, certain := s.splits.known(t, partition)
	limit := descendFirst
	for part := partOf(starts, at); part >= 0; {
		rows, err := s.descendPart(ctx, how, st, partition, part, at, limit)
		if err != nil {
			return err
		}
		if !certain && mayGoOn(rows, part, at) {
			if starts, err = s.partsOf(ctx, t, partition); err != nil {
				return err
			}
			certain = true
			if later := partOf(starts, at); later != part {
				part = later
				continue
			}
		}
		certain = true
		for _, row := range rows {
			if row.value == nil {
				return nil
			}
			if enough, err := found(row.sort, *row.value); enough || err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		switch {
		case len(rows) < limit:
			part--
		case rows[len(rows)-1].sort == 0:
			return nil
		default:
			at = rows[len(rows)-1].sort - 1
		}
		limit = min(2*limit, maxPage)
	}
	return nil
}

// Pointer implements kv.Reader.
func (s *Store) Pointer(ctx context.Context, name string) ([]byte, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if err := checkPointer(name); err != nil {
		return nil, err
	}
	var value []byte
	query := s.query("SELECT value FROM "+tablePointers+" WHERE store = ? AND name = ?", s.id, name)
	if err := s.cluster.scan(ctx, query, &value); err != nil {
		return nil, err
	}
	return notNil(value), nil
}

// Pointers implements kv.Store.
func (s *Store) Pointers(ctx context.Context) (all map[string][]byte, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	err = s.cluster.retry(ctx, s.cluster.config.readPatience, func(ctx context.Context) error {
		all = map[string][]byte{}
		rows := s.query("SELECT name, value FROM "+tablePointers+" WHERE store = ?", s.id).IterContext(ctx)
		var name *string
		for value := []byte(nil); rows.Scan(&name, &value); value = nil {
			if name != nil { // nil: only the static columns
				all[*name] = notNil(value)
			}
		}
		return rows.Close()
	})
	return all, err
}

func checkPointer(name string) error {
	if len(name) == 0 || len(name) > kv.MaxPartition {
		return fmt.Errorf("kv/cassandra: pointer name of %d bytes (want 1 to %d)", len(name), kv.MaxPartition)
	}
	return nil
}
