package cassandra

import (
	"context"
	"errors"
	"net"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// AgreementTimeout is how long a change of the schema waits for nodes.
const AgreementTimeout = agreementTimeout

// ReadPatience is how long a read is tried again.
const ReadPatience = readPatience

// Patience has reads and posts tried again for another time.
func (c *Config) Patience(p time.Duration) { c.readPatience, c.postPatience = p, p }

// Pause makes the store behave as that of a process that is paused: it does not renew its
// lease, and believes that it did.
func (s *Store) Pause() {
	s.stop()
	s.stopped.Wait()
	s.lease.renewed.Store(1 << 62)
}

// Resume makes the store notice how long ago it renewed its lease.
func (s *Store) Resume() { s.lease.renewed.Store(-1 << 62) }

// SetBack makes the store behave as if the time of the machine had been later by so much until now: it writes a
// post with that time.
func (s *Store) SetBack(ctx context.Context, by time.Duration, name string, value []byte) error {
	s.clock.atLeast(time.Now().Add(by).UnixMicro())
	post := s.cluster.session.Query("INSERT INTO "+tablePosts+" (store, name, value) VALUES (?, ?, ?)", s.id, name, value)
	return s.cluster.exec(ctx, s.cluster.config.readPatience, post.WithTimestamp(s.clock.next()))
}

// Parts returns the number of parts of a partition.
func (s *Store) Parts(ctx context.Context, t *kv.Table, partition []byte) (int, error) {
	starts, err := s.partsOf(ctx, t, partition)
	return len(starts) + 1, err
}

// Define changes the schema.
func (c *Cluster) Define(ctx context.Context, statement string) error {
	return c.define(ctx, c.session, statement)
}

// Repair brings the engine's own rows to all their replicas.
func (c *Cluster) Repair(ctx context.Context) error {
	for table := range ownTables {
		if err := c.session.Query("SELECT * FROM " + table).Consistency(gocql.All).ExecContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Late returns an attempt to set a pointer that a node makes only when it is called: like
// one that was sent before, and given up.
func (s *Store) Late(name, value string) func(context.Context) (applied bool, err error) {
	chained := s.chained
	return func(ctx context.Context) (bool, error) {
		applied, _, err := s.conditionally(ctx, s.cluster.config.readPatience, func(b *gocql.Batch) {
			b.Query("UPDATE "+tablePointers+" SET clock = ? WHERE store = ? IF fence = ? AND clock = ?", chained+1, s.id, s.token, chained)
			b.Query(setPointer, []byte(value), gocql.MustRandomUUID(), s.id, name)
		})
		return applied, err
	}
}

// Observe has f called after each attempt of a statement or batch at a node.
func (c *Config) Observe(f func(host string, timedOut bool)) {
	c.observer = observer(func(_ context.Context, q gocql.ObservedQuery) {
		f(q.Host.ConnectAddress().String(), errors.Is(q.Err, gocql.ErrTimeoutNoResponse))
	})
}

// ObserveStatements has f called after each attempt of a statement, or of the first one of a batch, with the
// context of the call that it belongs to. The call goes on when f returns.
func (c *Config) ObserveStatements(f func(ctx context.Context, statement string)) {
	c.observer = observer(func(ctx context.Context, q gocql.ObservedQuery) { f(ctx, q.Statement) })
}

// ObserveRows has f called after each attempt of a statement, with the number of rows that it returned.
func (c *Config) ObserveRows(f func(statement string, rows int)) {
	c.observer = observer(func(_ context.Context, q gocql.ObservedQuery) { f(q.Statement, q.Rows) })
}

// Connect has connections opened by f, and an encrypted write that fails wait a minute for an alert.
func (c *Config) Connect(f func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.connect, c.alertPatience = f, time.Minute
}

type observer func(context.Context, gocql.ObservedQuery)

// ObserveQuery implements gocql.QueryObserver.
func (o observer) ObserveQuery(ctx context.Context, q gocql.ObservedQuery) { o(ctx, q) }

// Replication returns how the rows of the keyspace are replicated, by datacenter.
func (c *Cluster) Replication(ctx context.Context) (all map[string]string, err error) {
	query := c.session.Query("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?", c.config.Keyspace)
	err = c.scan(ctx, query.Consistency(gocql.One), &all)
	return all, err
}

// BeginPart begins a part of a partition of which only a replica learns that nobody asks, like that of a writer that dies
// when it has sent the statement. After reach everybody finds it.
func (s *Store) BeginPart(ctx context.Context, t *kv.Table, partition []byte, start uint64) (reach func(context.Context) error, err error) {
	known, _ := s.splits.known(t, partition)
	if err := s.addPart(ctx, newPart{t, partition, append(known, start)}); err != nil {
		return nil, err
	}
	const row = " WHERE store = ? AND tbl = ? AND p = ? AND i = ?"
	key := []any{s.id, int(t.ID), partition, len(known) + 1}
	var written int64
	if err := s.cluster.scan(ctx, s.cluster.session.Query("SELECT WRITETIME(start) FROM "+tableSplits+row, key...), &written); err != nil {
		return nil, err
	}
	reach = func(ctx context.Context) error {
		add := s.cluster.session.Query("INSERT INTO "+tableSplits+" (store, tbl, p, i, start) VALUES (?, ?, ?, ?, ?)", append(key, sortColumn(start))...)
		return s.cluster.exec(ctx, s.cluster.config.readPatience, add.WithTimestamp(written+1))
	}
	return reach, s.cluster.exec(ctx, s.cluster.config.readPatience, s.cluster.session.Query("DELETE FROM "+tableSplits+row, key...).WithTimestamp(written))
}
