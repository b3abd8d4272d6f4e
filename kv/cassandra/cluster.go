// Package cassandra is the distributed engine of kv, on Apache Cassandra 5.
//
// A [Cluster] is the connection to one keyspace, which holds any number of stores. A row
// table of kv is one table of the keyspace, shared by all stores. Rows are written first
// and acknowledged by a quorum of replicas; pointers follow in one lightweight transaction.
// docs/format.md draws the tables.
//
// A store that is opened to be written is leased: one process holds it, renews the lease,
// and sends the lease's fencing token with every change of a pointer. The token grows with
// each holder, so a process that lost the lease without noticing changes no pointer. A
// store opened with [Options.Shared] has no lease, and any number of processes write rows
// of their own in it.
//
// Partitions that grow are split by ranges of sort keys, see split.go. Callers do not
// notice.
//
// Every statement is idempotent, goes to a replica, is tried again at other nodes, and is
// sent to a second node if the first is slow. What fails because too few nodes answer
// returns [kv.ErrUnavailable], and succeeds again when they do.
package cassandra

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// Config says where the cluster is and how it is used. Zero values mean the defaults.
type Config struct {
	Hosts      []string // addresses of some nodes; the driver finds the others
	Port       int      // DefaultPort
	Keyspace   string   // DefaultKeyspace; letters, digits and underscores
	Datacenter string   // whose nodes are asked; empty: that of the first node that answers, if only one has replicas

	User, Password string      // empty: no authentication
	TLS            *tls.Config // nil: no encryption

	// Replication is the number of replicas in the datacenter of a keyspace that Connect
	// creates (DefaultReplication).
	Replication int
	// AcrossDatacenters makes a quorum one of the replicas of all datacenters. Otherwise it
	// is one of those in Datacenter.
	AcrossDatacenters bool

	// Lease is the time after which a writer that does not renew its lease has lost it
	// (DefaultLease).
	Lease time.Duration
	// SplitBytes is the approximate size at which a partition is split (DefaultSplitBytes).
	SplitBytes int64

	Logger *slog.Logger // nil: discard

	observer gocql.QueryObserver // for tests; nil: none
	// For tests of connections; zero values mean that of net, and a second.
	connect       connector
	alertPatience time.Duration
	// For tests that must not depend on how busy the machine is; zero values mean the constants.
	readPatience, postPatience time.Duration
}

const (
	DefaultPort        = 9042
	DefaultKeyspace    = "ashlar"
	DefaultReplication = 3
	DefaultLease       = 8 * time.Second
	DefaultSplitBytes  = 64 << 20
)

const (
	attemptTimeout = 3 * time.Second        // for the answer of one node
	speculateAfter = 150 * time.Millisecond // a second node is asked if the first takes longer
	speculations   = 2                      // further nodes asked
	// contendAfter is the time after which a second node is asked for a lightweight
	// transaction. It is long because two nodes with the same one hinder each other.
	contendAfter     = 500 * time.Millisecond
	connectTimeout   = 5 * time.Second
	reconnectEvery   = time.Second
	agreementTimeout = time.Minute // for all nodes that answer to have the same schema
)

// withDefaults returns the configuration with its defaults, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.Keyspace = cmp.Or(c.Keyspace, DefaultKeyspace)
	c.Replication = cmp.Or(c.Replication, DefaultReplication)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.SplitBytes = cmp.Or(c.SplitBytes, DefaultSplitBytes)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.alertPatience = cmp.Or(c.alertPatience, time.Second)
	c.readPatience = cmp.Or(c.readPatience, readPatience)
	c.postPatience = cmp.Or(c.postPatience, postPatience)
	if c.connect == nil {
		c.connect = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	switch {
	case len(c.Hosts) == 0:
		return c, errors.New("kv/cassandra: no hosts (want the address of at least one node)")
	case c.Replication < 1:
		return c, fmt.Errorf("kv/cassandra: replication %d (want 1 or more)", c.Replication)
	case c.Lease < time.Second:
		return c, fmt.Errorf("kv/cassandra: lease of %v (want 1s or more)", c.Lease)
	}
	return c, CheckKeyspace(c.Keyspace)
}

// CheckKeyspace returns an error for a name that no keyspace can have without quotes.
func CheckKeyspace(name string) error {
	valid := len(name) > 0 && len(name) <= 48 && name[0] >= 'a' && name[0] <= 'z'
	for _, c := range name {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
	}
	if !valid {
		return fmt.Errorf("invalid keyspace %q (want a letter, then lower-case letters, digits and underscores, 48 at most)", name)
	}
	return nil
}

// Cluster is a connection to a keyspace. Its methods may be called from many goroutines at
// once. It must be closed after its stores.
type Cluster struct {
	config  Config
	session *gocql.Session
	log     *slog.Logger

	quorum gocql.Consistency // for reads and writes
	one    gocql.Consistency // for rows that are either found or asked for again
	serial gocql.Consistency // for lightweight transactions

	speculation speculation // of reads and writes
	contention  speculation // of lightweight transactions

	creating sync.Mutex // held while a table is created
	mu       sync.Mutex
	tables   map[string]*statements // guarded by mu; row tables of the keyspace, by name
}

// Connect connects to a keyspace. If it does not exist, or is empty, it is prepared for
// stores, unless readOnly is set.
func Connect(ctx context.Context, config Config, readOnly bool) (*Cluster, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cluster{config: config, log: config.Logger, tables: map[string]*statements{}}
	c.quorum, c.one, c.serial = gocql.LocalQuorum, gocql.LocalOne, gocql.LocalSerial
	if config.AcrossDatacenters {
		c.quorum, c.one, c.serial = gocql.Quorum, gocql.One, gocql.Serial
	}
	if err := c.prepareKeyspace(ctx, readOnly); err != nil {
		return nil, fmt.Errorf("cassandra at %v: %w", config.Hosts, err)
	}
	// A node that does not know a new keyspace yet refuses connections to it.
	err = c.retry(ctx, c.config.readPatience, func(ctx context.Context) (err error) {
		c.session, err = c.open(ctx, config.Keyspace)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cassandra at %v: %w", config.Hosts, err)
	}
	if err := c.checkSchema(ctx, readOnly); err != nil {
		closeSession(c.session, c.log)
		return nil, fmt.Errorf("cassandra at %v: keyspace %s: %w", config.Hosts, config.Keyspace, err)
	}
	return c, nil
}

// open opens a session, with a keyspace or without one.
func (c *Cluster) open(ctx context.Context, keyspace string) (*gocql.Session, error) {
	o := gocql.NewCluster(c.config.Hosts...)
	o.Port, o.Keyspace = c.config.Port, keyspace
	o.Timeout, o.WriteTimeout, o.ConnectTimeout = attemptTimeout, attemptTimeout, connectTimeout
	o.Consistency, o.SerialConsistency = c.quorum, c.serial
	o.DefaultIdempotence = true
	o.RetryPolicy = otherNodes{}
	o.ReconnectInterval = reconnectEvery
	o.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: reconnectEvery}
	o.MaxWaitSchemaAgreement = time.Nanosecond // the driver would wait for nodes that are down; see agree
	o.Metadata.CacheMode = gocql.KeyspaceOnly
	o.Logger = &logger{log: c.log}
	o.PageSize = maxPage // scans ask for no more rows at once, so their pages need no second round trip
	local := gocql.RoundRobinHostPolicy()
	if c.config.Datacenter != "" {
		local = gocql.DCAwareRoundRobinPolicy(c.config.Datacenter)
		o.HostFilter = gocql.HostFilterFunc(c.asks)
	}
	hosts := newSlowHosts(local, c.config.observer)
	c.speculation = speculation{hosts, speculations, speculateAfter}
	c.contention = speculation{hosts, 1, contendAfter}
	o.QueryObserver, o.BatchObserver = hosts, hosts
	o.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(hosts, gocql.ShuffleReplicas())
	if c.config.User != "" {
		o.Authenticator = gocql.PasswordAuthenticator{Username: c.config.User, Password: c.config.Password}
	}
	o.Dialer = c.config.connect
	encrypted := dialer{connect: c.config.connect, config: c.config.TLS, patience: c.config.alertPatience}
	if c.config.TLS != nil {
		o.HostDialer = &encrypted
	}
	session, err := createSession(ctx, o)
	switch { // the driver has no types for these
	case err != nil && strings.Contains(err.Error(), "password are incorrect"):
		return nil, fmt.Errorf("user %q or its password is %w", c.config.User, errRefused)
	case err != nil && strings.Contains(err.Error(), "host was filtered"):
		// The driver's last host, in an order of chance: one that is asked before it may be in the datacenter, and down.
		return nil, fmt.Errorf("none of the hosts that answer is in datacenter %q, perhaps because its nodes are down", c.config.Datacenter)
	}
	return session, encrypted.explain(err)
}

// asks reports whether a node may be asked. The driver by itself goes on to nodes elsewhere when those of the
// datacenter do not answer. They would take LOCAL_QUORUM for a quorum of their own datacenter.
func (c *Cluster) asks(node *gocql.HostInfo) bool {
	return c.config.AcrossDatacenters || node.DataCenter() == c.config.Datacenter
}

// createSession opens a session, for which the driver takes no context: for each node that does not answer
// it waits for connectTimeout. When ctx is done, a goroutine is left that waits until the driver gives up, and
// closes a session that it opens nevertheless.
func createSession(ctx context.Context, o *gocql.ClusterConfig) (*gocql.Session, error) {
	type outcome struct {
		session *gocql.Session
		err     error
	}
	created := make(chan outcome)
	go func() {
		session, err := o.CreateSession()
		select {
		case created <- outcome{session, err}:
		case <-ctx.Done():
			if session != nil {
				session.Close()
			}
		}
	}()
	select {
	case made := <-created:
		return made.session, made.err
	case <-ctx.Done():
		return nil, fmt.Errorf("stopped before a node answered: %w", ctx.Err())
	}
}

// Close closes the connection.
func (c *Cluster) Close() error {
	closeSession(c.session, c.log)
	return nil
}

// closeTime is how long the driver may take to close a session.
const closeTime = 5 * time.Second

// closeSession closes a session. The driver waits for ever if it is just connecting to a node again: it then
// waits for metadata that it has stopped to read. So a goroutine may be left, with what it has open; all
// statements have been answered before.
func closeSession(session *gocql.Session, log *slog.Logger) {
	if !inTime(session.Close, closeTime) {
		log.Warn("the connections to Cassandra were not closed in time, and are left to the end of the process", "waited", closeTime)
	}
}

// inTime reports whether f has returned within a time.
func inTime(f func(), most time.Duration) bool {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		f()
	}()
	select {
	case <-returned:
		return true
	case <-time.After(most):
		return false
	}
}

// otherNodes tries a statement at up to three nodes. Further attempts are made by retry.
type otherNodes struct{}

func (otherNodes) Attempt(q gocql.RetryableQuery) bool {
	return q.Attempts() < 3 && q.Context().Err() == nil
}

func (otherNodes) GetRetryType(err error) gocql.RetryType {
	if isTransient(err) || isNoTable(err) { // a node that was down may not know a new table yet
		return gocql.RetryNextHost
	}
	return gocql.Rethrow
}

var _ kv.Store = (*Store)(nil)
