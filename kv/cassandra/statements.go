package cassandra

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// statements are the statements of one row table:
//
//	PRIMARY KEY ((store, p, i), s)
//
// p is kv's partition and i the part of it that holds the row, 0 for most partitions
// (split.go). s is the sort key as sortColumn encodes it, v the value. The static columns
// until and bytes say which part a partition ends with and how large it is.
type statements struct {
	name   string
	exists atomic.Bool // set once the table is known to exist

	create      string
	put         string // store, p, i, s, v
	drop        string // store, p, i
	delete      string // store, p, i, s
	deleteRange string // store, p, i, least s, greatest s
	written     string // store, p, i, least s, greatest s
	mark        string // store, p, i, s
	get         string // store, p, i, s
	newest      string // store, p, i, greatest s, limit
	ascend      string // store, p, i, least s, greatest s, limit
	walk        string // least token, greatest token
	token       string // store, p, i
	size        string // store, p, i
	setSize     string // bytes, store, p, i
	setUntil    string // until, store, p, i
}

func newStatements(t *kv.Table) *statements {
	order, descending, ascending := "ASC", " ORDER BY s DESC", ""
	if t.Kind == kv.Versions {
		order, descending, ascending = "DESC", "", " ORDER BY s ASC"
	}
	grace := ""
	if t.Transient {
		// Partitions are dropped soon. What a lost tombstone brings back is dropped again.
		grace = " AND gc_grace_seconds = 86400"
	}
	const (
		part  = " WHERE store = ? AND p = ? AND i = ?"
		token = "token(store, p, i)"
	)
	return &statements{
		name: t.Name,
		create: fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (store int, p blob, i int, s bigint, v blob, until bigint static, bytes bigint static, PRIMARY KEY ((store, p, i), s))"+
			" WITH CLUSTERING ORDER BY (s %s) AND compaction = {'class': 'UnifiedCompactionStrategy'}"+speculativeRetry+"%s", t.Name, order, grace),
		put:         "INSERT INTO " + t.Name + " (store, p, i, s, v) VALUES (?, ?, ?, ?, ?)",
		drop:        "DELETE FROM " + t.Name + part,
		delete:      "DELETE FROM " + t.Name + part + " AND s = ?",
		deleteRange: "DELETE FROM " + t.Name + part + " AND s >= ? AND s <= ?",
		written:     "SELECT MAX(WRITETIME(v)) FROM " + t.Name + part + " AND s >= ? AND s <= ?",
		mark:        "INSERT INTO " + t.Name + " (store, p, i, s) VALUES (?, ?, ?, ?)",
		get:         "SELECT v FROM " + t.Name + part + " AND s = ?",
		newest:      "SELECT s, v, until FROM " + t.Name + part + " AND s <= ?" + descending + " LIMIT ?",
		ascend:      "SELECT s, v, until FROM " + t.Name + part + " AND s >= ? AND s <= ?" + ascending + " LIMIT ?",
		walk:        "SELECT store, p, i, s, v, until, " + token + " FROM " + t.Name + " WHERE " + token + " >= ? AND " + token + " <= ?",
		token:       "SELECT " + token + " FROM " + t.Name + part + " LIMIT 1",
		size:        "SELECT s, bytes FROM " + t.Name + part + descending + " LIMIT 1",
		setSize:     "UPDATE " + t.Name + " SET bytes = ?" + part,
		setUntil:    "UPDATE " + t.Name + " SET until = ?" + part,
	}
}

// sortColumn encodes a sort key as a bigint that is ordered like it.
func sortColumn(sort uint64) int64 { return int64(sort ^ 1<<63) }

func sortOf(column int64) uint64 { return uint64(column) ^ 1<<63 }

// checkTable returns an error for a table that cannot be a table of the keyspace.
func checkTable(t *kv.Table) error {
	switch {
	case t == nil:
		return errors.New("kv/cassandra: no table given")
	case t.ID == 0:
		return fmt.Errorf("kv/cassandra: table %q has ID 0, which is reserved", t.Name)
	case t.Kind != kv.Versions && t.Kind != kv.List:
		return fmt.Errorf("kv/cassandra: table %q has kind %d (want Versions or List)", t.Name, t.Kind)
	case ownTables[t.Name] != "" || CheckKeyspace(t.Name) != nil:
		return fmt.Errorf("kv/cassandra: invalid table name %q (want letters, digits and underscores)", t.Name)
	}
	return nil
}

// checkRow returns an error for a row that cannot be stored.
func checkRow(t *kv.Table, partition []byte) error {
	if err := checkTable(t); err != nil {
		return err
	}
	if len(partition) > kv.MaxPartition {
		return fmt.Errorf("kv/cassandra: partition of %d bytes in table %q (want at most %d)", len(partition), t.Name, kv.MaxPartition)
	}
	return nil
}

// exec runs a statement without a result.
func (c *Cluster) exec(ctx context.Context, patience time.Duration, q *gocql.Query) error {
	return c.retry(ctx, patience, q.SetSpeculativeExecutionPolicy(c.speculation).ExecContext)
}

// scan reads the only row of a result, or returns kv.ErrNotFound.
func (c *Cluster) scan(ctx context.Context, q *gocql.Query, dest ...any) error {
	q.SetSpeculativeExecutionPolicy(c.speculation)
	err := c.retry(ctx, c.config.readPatience, func(ctx context.Context) error { return q.ScanContext(ctx, dest...) })
	if errors.Is(err, gocql.ErrNotFound) {
		return kv.ErrNotFound
	}
	return err
}

// compareAndSet runs a conditional statement. If its condition does not hold, now has the
// columns that it names. The statement must recognize its own earlier, successful attempt:
// an attempt without an answer is repeated.
func (c *Cluster) compareAndSet(ctx context.Context, patience time.Duration, statement string, args ...any) (applied bool, now map[string]any, err error) {
	err = c.retry(ctx, patience, func(ctx context.Context) (err error) {
		now = map[string]any{}
		set := c.session.Query(statement, args...).RetryPolicy(nil).SetSpeculativeExecutionPolicy(c.contention)
		applied, err = set.MapScanCASContext(ctx, now)
		return err
	})
	return applied, now, err
}
