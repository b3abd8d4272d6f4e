package cassandra

import (
	"context"
	"slices"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// remove removes rows. All replicas must acknowledge it: Get trusts a row that one replica
// has, so none may be left with a row that was removed. While a node is down, removals wait.
func (s *Store) remove(ctx context.Context, removals []removal) error {
	if len(removals) == 0 {
		return nil
	}
	if err := s.waitForLease(ctx); err != nil {
		return err
	}
	for _, r := range removals {
		if err := s.outlast(ctx, s.cluster.table(r.table), r.partition, r.from, r.to); err != nil {
			return err
		}
	}
	at := s.clock.next()
	return each(ctx, slices.Values(removals), func(ctx context.Context, r removal) error { return s.removeRange(ctx, r, at) })
}

// outlast makes further timestamps greater than those of rows that are going to be removed: a removal with a lesser one
// leaves them. In a shared store, whose partitions have only part 0, a process whose machine's time is ahead may have
// written them.
func (s *Store) outlast(ctx context.Context, st *statements, partition []byte, from, to uint64) error {
	if !s.shared {
		return nil // the lease hands the clock on
	}
	var last *int64
	query := s.cluster.session.Query(st.written, s.id, partition, 0, sortColumn(from), sortColumn(to)).SetSpeculativeExecutionPolicy(s.cluster.speculation)
	err := s.cluster.retry(ctx, s.cluster.patience(ctx), func(ctx context.Context) error { return query.ScanContext(ctx, &last) })
	if err = s.orNoTable(ctx, st, err); err == nil && last != nil {
		s.clock.atLeast(*last)
	}
	return err
}

// removeRange removes rows of one partition from all of its parts that have some. The
// parts remain: part 0 of a partition that has others always has a row, the mark (split.go).
// It is put before rows are removed, and stays because its timestamp is greater than at:
// without it, a reader would take the partition for an empty one.
func (s *Store) removeRange(ctx context.Context, r removal, at int64) error {
	st := s.cluster.table(r.table)
	starts, _ := s.splits.known(r.table, r.partition)
	if r.from == 0 && len(starts) > 0 {
		if err := s.mark(ctx, st, r.partition); err != nil {
			return err
		}
	}
	for part := partOf(starts, r.from); part <= partOf(starts, r.to); part++ {
		if err := s.removeFromPart(ctx, st, r, part, at); err != nil {
			return s.orNoTable(ctx, st, err)
		}
	}
	return nil
}

func (s *Store) removeFromPart(ctx context.Context, st *statements, r removal, part int, at int64) error {
	remove := s.cluster.session.Query(st.delete, s.id, r.partition, part, sortColumn(r.from))
	if r.from != r.to {
		remove = s.cluster.session.Query(st.deleteRange, s.id, r.partition, part, sortColumn(r.from), sortColumn(r.to))
	}
	level := gocql.All
	if r.table.Transient { // read by a quorum
		level = s.cluster.quorum
	}
	return s.cluster.retry(ctx, s.cluster.patience(ctx), func(ctx context.Context) error {
		if err := s.holdLease(ctx); err != nil {
			return err
		}
		return remove.Consistency(level).WithTimestamp(at).ExecContext(ctx)
	})
}

// mark puts the mark into part 0 of a partition that has several parts.
func (s *Store) mark(ctx context.Context, st *statements, partition []byte) error {
	mark := s.cluster.session.Query(st.mark, s.id, partition, 0, sortColumn(0))
	return s.cluster.exec(ctx, s.cluster.patience(ctx), mark.WithTimestamp(s.clock.next()))
}
