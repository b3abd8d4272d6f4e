package cassandra

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// schemaVersion is the version of the tables as docs/format.md draws them. It changes when
// older programs would misread the keyspace.
const schemaVersion = 2

// Tables of the engine itself. All others hold rows and have the names of their kv.Table.
const (
	tableSchema   = "ashlar_schema"
	tableStores   = "ashlar_stores"
	tablePointers = "ashlar_pointers"
	tableSplits   = "ashlar_splits"
	tablePosts    = "ashlar_posts"
)

// ownTables are the columns of these tables.
var ownTables = map[string]string{
	tableSchema:   "part text PRIMARY KEY, version int, holder text",
	tableStores:   "part int, name text, id int, last int static, PRIMARY KEY (part, name)",
	tablePointers: "store int, name text, value blob, writer uuid, fence bigint static, holder text static, clock bigint static, bytes bigint static, PRIMARY KEY (store, name)",
	tableSplits:   "store int, tbl int, p blob, i int, start bigint, PRIMARY KEY (store, tbl, p, i)",
	tablePosts:    "store int, name text, value blob, PRIMARY KEY (store, name)",
}

// speculativeRetry is an option of all tables: a node that asks others for a read asks one more if they
// take longer. Cassandra's default for a table without many reads is more than two seconds,
// for which a node that hangs would hold up reads at the others.
const speculativeRetry = " AND speculative_retry = 'MIN(99p,100ms)'"

// prepareKeyspace creates the keyspace if it does not exist, and finds out the datacenter.
func (c *Cluster) prepareKeyspace(ctx context.Context, readOnly bool) error {
	session, err := c.open(ctx, "")
	if err != nil {
		return translate(err)
	}
	defer closeSession(session, c.log)
	chosen := c.config.Datacenter != ""
	if !chosen {
		query := session.Query("SELECT data_center FROM system.local").Consistency(gocql.One)
		if err := c.scan(ctx, query, &c.config.Datacenter); err != nil {
			return err
		}
	}
	var replication map[string]string
	query := session.Query("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?", c.config.Keyspace)
	err = c.scan(ctx, query.Consistency(gocql.One), &replication)
	if err == nil && !chosen && !c.config.AcrossDatacenters {
		return oneDatacenter(c.config.Keyspace, replication)
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if readOnly {
		return fmt.Errorf("keyspace %s: %w (a writer creates it)", c.config.Keyspace, kv.ErrNotFound)
	}
	create := fmt.Sprintf("CREATE KEYSPACE IF NOT EXISTS %s WITH replication = {'class': 'NetworkTopologyStrategy', '%s': %d}",
		c.config.Keyspace, c.config.Datacenter, c.config.Replication)
	if err := c.define(ctx, session, create); err != nil {
		return fmt.Errorf("create keyspace %s: %w", c.config.Keyspace, err)
	}
	c.log.Info("keyspace created", "keyspace", c.config.Keyspace, "datacenter", c.config.Datacenter, "replication", c.config.Replication)
	return nil
}

// oneDatacenter returns an error if a keyspace has replicas in several datacenters. Which node answers first must not choose
// one of them: another process could choose another, and both would have the same lease.
func oneDatacenter(keyspace string, replication map[string]string) error {
	var with []string
	if strings.HasSuffix(replication["class"], "NetworkTopologyStrategy") {
		for name, replicas := range replication {
			if name != "class" && replicas != "0" {
				with = append(with, name)
			}
		}
	}
	if len(with) < 2 {
		return nil
	}
	slices.Sort(with)
	return fmt.Errorf("keyspace %s has replicas in the datacenters %s (want one of these as the datacenter, the same in all processes, or the consistency quorum)", keyspace, strings.Join(with, ", "))
}

// define changes the schema and waits until all nodes that answer have agreed on it. A node
// that does not answer learns of the change from the others when it is back. The statements
// may be run again.
func (c *Cluster) define(ctx context.Context, session *gocql.Session, statements ...string) error {
	return c.retry(ctx, agreementTimeout, func(ctx context.Context) error {
		for _, statement := range statements {
			if err := session.Query(statement).ExecContext(ctx); err != nil {
				return err
			}
		}
		return c.agree(ctx, session)
	})
}

var errDisagree = errors.New("the nodes have different versions of the schema")

// disagreement is errDisagree with the errors of nodes that did not say their version, as text: the time in
// which a node must answer is not a deadline of the caller.
func disagreement(silent []error) error {
	if len(silent) == 0 {
		return errDisagree
	}
	text := make([]string, len(silent))
	for i, err := range silent {
		text[i] = err.Error()
	}
	return fmt.Errorf("%w (%s)", errDisagree, strings.Join(text, "; "))
}

// agree waits until all nodes that answer have the same schema, and most do. The driver's own
// function asks one node for the versions of all, which include those of nodes that are down.
func (c *Cluster) agree(ctx context.Context, session *gocql.Session) error {
	waiting, cancel := context.WithTimeout(ctx, agreementTimeout)
	defer cancel()
	for {
		versions, all, silent := c.schemaVersions(waiting, session)
		for _, nodes := range versions {
			if len(versions) == 1 && 2*nodes > all {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-waiting.Done():
			return disagreement(silent)
		case <-time.After(agreementRetry):
		}
	}
}

const (
	agreementRetry = 100 * time.Millisecond // between two questions
	versionTimeout = time.Second            // for the answer of one node
)

// schemaVersions asks the nodes for their schema version. It returns how many have each, the
// number of all nodes, and why some did not answer.
func (c *Cluster) schemaVersions(ctx context.Context, session *gocql.Session) (versions map[gocql.UUID]int, all int, silent []error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var (
		asked sync.WaitGroup
		mu    sync.Mutex
	)
	versions = map[gocql.UUID]int{}
	hosts := slices.DeleteFunc(session.GetHosts(), func(host *gocql.HostInfo) bool { return !c.asks(host) })
	for _, host := range hosts {
		asked.Go(func() {
			var version gocql.UUID
			ask := session.Query("SELECT schema_version FROM system.local").SetHostID(host.HostID()).Consistency(gocql.One).RetryPolicy(nil)
			err := ask.ScanContext(ctx, &version)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, fmt.Errorf("node %s: %w", host.ConnectAddress(), err))
				return
			}
			versions[version]++
		})
	}
	asked.Wait()
	return versions, len(hosts), silent
}

// checkSchema refuses a keyspace that holds something else, or another version. It creates
// the tables of an empty one.
func (c *Cluster) checkSchema(ctx context.Context, readOnly bool) error {
	names, err := c.tableNames(ctx)
	if err != nil {
		return err
	}
	if len(names) > 0 && !slices.Contains(names, tableSchema) {
		return fmt.Errorf("%w: it has a table %q and no table %s (want an empty keyspace, or one that ashlar made)", kv.ErrForeign, names[0], tableSchema)
	}
	version := 0
	if len(names) > 0 {
		query := c.session.Query("SELECT version FROM " + tableSchema + " WHERE part = 'ashlar'")
		if err := c.scan(ctx, query, &version); err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
	}
	switch {
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("schema version %d (want %d): a newer version of ashlar made it", version, schemaVersion)
	case version != 0 && readOnly:
		return fmt.Errorf("schema version %d (want %d): start a writer of this version first, which brings it up to date", version, schemaVersion)
	case readOnly:
		return fmt.Errorf("%w (a writer prepares the keyspace)", kv.ErrNotFound)
	}
	return c.createTables(ctx, version) // of an empty or older keyspace, or of one whose preparation was stopped
}

func (c *Cluster) tableNames(ctx context.Context) (names []string, err error) {
	err = c.retry(ctx, c.config.readPatience, func(ctx context.Context) error {
		names = names[:0]
		rows := c.session.Query("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?", c.config.Keyspace).
			Consistency(gocql.One).IterContext(ctx)
		for name := ""; rows.Scan(&name); {
			names = append(names, name)
		}
		return rows.Close()
	})
	return names, err
}

// createTables creates the engine's own tables. version is the keyspace's, 0 for an empty one.
// Several processes may do so at once: the tables have fixed IDs, so all processes create the
// same ones.
func (c *Cluster) createTables(ctx context.Context, version int) error {
	for _, name := range []string{tableSchema, tableStores, tablePointers, tableSplits, tablePosts} {
		create := fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s) WITH id = %s"+speculativeRetry, name, ownTables[name], fixedID(c.config.Keyspace+"."+name))
		if err := c.define(ctx, c.session, create); err != nil {
			return fmt.Errorf("create table %s: %w", name, err)
		}
	}
	if version == 0 {
		const identify = "INSERT INTO " + tableSchema + " (part, holder) VALUES ('identity', ?) IF NOT EXISTS"
		if _, _, err := c.compareAndSet(ctx, c.config.readPatience, identify, gocql.MustRandomUUID().String()); err != nil {
			return err
		}
	}
	return c.exec(ctx, c.config.readPatience, c.session.Query("INSERT INTO "+tableSchema+" (part, version) VALUES ('ashlar', ?)", schemaVersion))
}

// fixedID returns a UUID that depends on text alone.
func fixedID(text string) gocql.UUID {
	sum := sha256.Sum256([]byte(text))
	id := gocql.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x50, id[8]&0x3f|0x80
	return id
}

// table returns the statements of a row table that checkTable accepts, whether it exists or
// not.
func (c *Cluster) table(t *kv.Table) *statements {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.tables[t.Name]
	if found == nil {
		found = newStatements(t)
		c.tables[t.Name] = found
	}
	return found
}

// Prepare implements kv.Preparer.
func (s *Store) Prepare(ctx context.Context, tables []*kv.Table) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if s.readOnly {
		return errReadOnly
	}
	all := make([]*statements, len(tables))
	for i, t := range tables {
		if err := checkTable(t); err != nil {
			return err
		}
		all[i] = s.cluster.table(t)
	}
	return s.cluster.create(ctx, all...)
}

// create creates the row tables that do not exist. Nodes agree on all of them at once.
func (c *Cluster) create(ctx context.Context, tables ...*statements) error {
	known := func(st *statements) bool { return st.exists.Load() }
	if !slices.ContainsFunc(tables, func(st *statements) bool { return !known(st) }) {
		return nil
	}
	c.creating.Lock()
	defer c.creating.Unlock()
	tables = slices.DeleteFunc(slices.Clone(tables), known)
	for _, st := range tables {
		exists, err := c.recorded(ctx, st.name)
		if err != nil {
			return err
		}
		st.exists.Store(exists)
	}
	if tables = slices.DeleteFunc(tables, known); len(tables) == 0 {
		return nil
	}
	unlock, err := c.lockSchema(ctx)
	if err != nil {
		return err
	}
	err = c.createLocked(ctx, tables)
	if err = errors.Join(err, unlock()); err != nil {
		return fmt.Errorf("create table %s and %d more: %w", tables[0].name, len(tables)-1, err)
	}
	return nil
}

// createLocked creates row tables while no other process does. Their IDs depend on their
// names and on the keyspace. So a statement that a node carries out late, or after another
// node did, does not make another table of the same name.
func (c *Cluster) createLocked(ctx context.Context, tables []*statements) error {
	keyspace, err := c.identity(ctx)
	if err != nil {
		return err
	}
	definitions := make([]string, len(tables))
	for i, st := range tables {
		definitions[i] = fmt.Sprintf("%s AND id = %s", st.create, fixedID(keyspace+"."+st.name))
	}
	if err := c.define(ctx, c.session, definitions...); err != nil {
		return err
	}
	for _, st := range tables {
		record := c.session.Query("INSERT INTO "+tableSchema+" (part, version) VALUES (?, ?)", "table "+st.name, schemaVersion)
		if err := c.exec(ctx, c.config.readPatience, record); err != nil {
			return err
		}
		st.exists.Store(true)
	}
	return nil
}

// identity names the keyspace among all that had its name. One that an older version made
// has the same as others with its name.
func (c *Cluster) identity(ctx context.Context) (string, error) {
	var id string
	err := c.scan(ctx, c.session.Query("SELECT holder FROM "+tableSchema+" WHERE part = 'identity'"), &id)
	if errors.Is(err, kv.ErrNotFound) {
		return fixedID(c.config.Keyspace + "." + tableSchema).String(), nil
	}
	return id, err
}

// recorded reports whether a row table has been created.
func (c *Cluster) recorded(ctx context.Context, table string) (bool, error) {
	var version int
	err := c.scan(ctx, c.session.Query("SELECT version FROM "+tableSchema+" WHERE part = ?", "table "+table), &version)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

const (
	schemaLock      = time.Minute            // after which the lock of a stopped process is gone
	schemaLockRetry = 200 * time.Millisecond // between two attempts to get it
)

// lockSchema keeps other processes from creating tables: Cassandra cannot merge two
// definitions of a table that are made at once.
func (c *Cluster) lockSchema(ctx context.Context) (unlock func() error, err error) {
	me := gocql.MustRandomUUID().String()
	lock := "INSERT INTO " + tableSchema + " (part, holder) VALUES ('creating', ?) IF NOT EXISTS USING TTL ?"
	for {
		applied, now, err := c.compareAndSet(ctx, c.config.readPatience, lock, me, int(schemaLock.Seconds()))
		if err != nil {
			return nil, err
		}
		if applied || now["holder"] == me {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(schemaLockRetry):
		}
	}
	return func() error {
		_, _, err := c.compareAndSet(context.WithoutCancel(ctx), c.config.readPatience, "DELETE FROM "+tableSchema+" WHERE part = 'creating' IF holder = ?", me)
		return err
	}, nil
}
