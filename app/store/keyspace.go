package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ashlar/gateway"
	"ashlar/kv"
	"ashlar/kv/cassandra"
	"ashlar/kv/rowcache"
)

// Cassandra says where a keyspace is. docs/configuration.md tells what each entry means.
type Cassandra struct {
	Hosts        []string     `yaml:"hosts"`
	Port         int          `yaml:"port"`
	Keyspace     string       `yaml:"keyspace"`
	Datacenter   string       `yaml:"datacenter"`
	Replication  int          `yaml:"replication"`
	Consistency  string       `yaml:"consistency"`
	User         string       `yaml:"user"`
	PasswordFile string       `yaml:"password_file"`
	TLS          CassandraTLS `yaml:"tls"`
}

// CassandraTLS is how connections to the nodes are encrypted.
type CassandraTLS struct {
	Enabled     bool   `yaml:"enabled"`
	CA          string `yaml:"ca"`          // PEM file; empty: the system's authorities
	Certificate string `yaml:"certificate"` // PEM file, for clients that must have one
	Key         string `yaml:"key"`         // PEM file
}

// Consistencies.
const (
	LocalQuorum = "local_quorum"
	Quorum      = "quorum"
)

// passwordVariable is the environment variable with the password if there is no file.
const passwordVariable = "ASHLAR_CASSANDRA_PASSWORD"

// DefaultCassandra returns the defaults.
func DefaultCassandra() Cassandra {
	return Cassandra{Port: cassandra.DefaultPort, Keyspace: cassandra.DefaultKeyspace, Replication: cassandra.DefaultReplication, Consistency: LocalQuorum}
}

// Used reports whether the stores are in a keyspace.
func (c *Cassandra) Used() bool { return len(c.Hosts) > 0 }

// CheckHosts returns an error for hosts that are not addresses, and if there are none although other entries say that the
// stores are in a keyspace.
func (c *Cassandra) CheckHosts() error {
	if others := *c; !c.Used() {
		if others.Hosts = nil; !reflect.DeepEqual(others, DefaultCassandra()) {
			return errors.New("no hosts, but other entries of store.cassandra are set (want the address of at least one node)")
		}
	}
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, "/ ") || strings.Count(host, ":") == 1 {
			return fmt.Errorf("invalid host %q (want a name or an address, without a port)", host)
		}
	}
	return nil
}

// CheckPort returns an error for a number that is not a port.
func (c *Cassandra) CheckPort() error {
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("invalid port %d (want one from 1 to 65535)", c.Port)
	}
	return nil
}

// CheckKeyspace returns an error for a keyspace that cannot be used.
func (c *Cassandra) CheckKeyspace() error { return cassandra.CheckKeyspace(c.Keyspace) }

// CheckConsistency returns an error for an unknown consistency.
func (c *Cassandra) CheckConsistency() error {
	if !slices.Contains([]string{LocalQuorum, Quorum}, c.Consistency) {
		return fmt.Errorf("unknown consistency %q (want %s or %s)", c.Consistency, LocalQuorum, Quorum)
	}
	return nil
}

// CheckTLS returns an error for files that do not belong together.
func (t *CassandraTLS) CheckTLS() error {
	switch {
	case (t.Certificate == "") != (t.Key == ""):
		return errors.New("only one of certificate and key is set (want both or neither)")
	case !t.Enabled && (t.CA != "" || t.Certificate != ""):
		return errors.New("files are set but enabled is not (want enabled: true)")
	}
	return nil
}

// CheckFiles returns what is wrong with the files that name the password and the certificates.
func (c *Cassandra) CheckFiles() error {
	if !c.Used() {
		return nil
	}
	_, err := c.filePassword()
	if c.TLS.Enabled {
		_, wrong := c.TLS.open()
		err = errors.Join(err, wrong)
	}
	return err
}

// filePassword returns the password in the file, empty without a file.
func (c *Cassandra) filePassword() (string, error) {
	return ReadSecret("password of Cassandra's user", c.PasswordFile)
}

// options returns the configuration of the engine.
func (c *Cassandra) options() (cassandra.Config, error) {
	o := cassandra.Config{
		Hosts: c.Hosts, Port: c.Port, Keyspace: c.Keyspace, Datacenter: c.Datacenter, Replication: c.Replication,
		AcrossDatacenters: c.Consistency == Quorum, User: c.User, Logger: slog.Default(),
	}
	password, err := c.filePassword()
	if err != nil {
		return o, err
	}
	o.Password = cmp.Or(password, os.Getenv(passwordVariable))
	if c.User != "" && o.Password == "" {
		return o, fmt.Errorf("no password for Cassandra's user %q (want store.cassandra.password_file, or the environment variable %s)", c.User, passwordVariable)
	}
	if c.TLS.Enabled {
		o.TLS, err = c.TLS.open()
	}
	return o, err
}

func (t *CassandraTLS) open() (*tls.Config, error) {
	config := new(tls.Config)
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("authority of Cassandra's certificates: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("authority of Cassandra's certificates: %s has no certificate (want PEM)", t.CA)
		}
	}
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate for Cassandra: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Keyspace is a keyspace of a cluster with the stores of a service.
type Keyspace struct {
	ctx     context.Context
	cluster *cassandra.Cluster
	place   string
	reading bool
	patient bool // waits for leases
	keep    bool // rows of networks that are read
	kept    RowCache
}

// AwaitLeases makes OpenNetwork wait for the lease of a process that was killed.
func (k *Keyspace) AwaitLeases() { k.patient = true }

// RowCache says what a reader keeps of each network's rows.
type RowCache struct {
	Dir   string // for the networks' directories; empty: rows are kept in memory only
	Bytes int64  // of each network on disk
}

// LeastRowCache is the least space of a network's rows on disk.
const LeastRowCache = rowcache.LeastDiskBytes

// KeepRows makes the networks that are opened to be read from now on keep rows, in
// [kv.Options.CacheBytes] of memory and on disk.
func (k *Keyspace) KeepRows(c RowCache) { k.keep, k.kept = true, c }

// Connect connects to a keyspace. If reading is set, networks are only read, and neither
// the keyspace nor a network's store is created. Accounts are written in any case. ctx is
// for opening stores too.
func Connect(ctx context.Context, c Cassandra, reading bool) (*Keyspace, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	cluster, err := cassandra.Connect(ctx, o, reading)
	if err != nil {
		return nil, err
	}
	place := fmt.Sprintf("keyspace %s of cassandra at %s", c.Keyspace, net.JoinHostPort(c.Hosts[0], fmt.Sprint(cmp.Or(c.Port, cassandra.DefaultPort))))
	return &Keyspace{ctx: ctx, cluster: cluster, place: place, reading: reading}, nil
}

// String says which keyspace it is.
func (k *Keyspace) String() string { return k.place }

// Exists implements [Stores].
func (k *Keyspace) Exists(ctx context.Context, network string) (bool, error) {
	names, err := k.List(ctx)
	return slices.Contains(names, network), err
}

// List implements [Stores].
func (k *Keyspace) List(ctx context.Context) ([]string, error) {
	stores, err := k.cluster.Names(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, store := range stores {
		if network, ok := strings.CutPrefix(store, networkPrefix); ok {
			names = append(names, network)
		}
	}
	return names, nil
}

// OpenAccounts implements [Stores]. All processes of a cluster write to it.
func (k *Keyspace) OpenAccounts(accept func(kv.Reader) error) (kv.Store, error) {
	store, err := k.cluster.Open(k.ctx, AccountsName, kv.Options{Accept: accept}, cassandra.Options{Shared: true})
	if err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	return store, nil
}

// OpenNetwork implements [Stores]. The error is a kv.ErrInUse while another process writes
// to the network.
func (k *Keyspace) OpenNetwork(name string, o kv.Options) (kv.Store, error) {
	if err := gateway.CheckNetworkName(name); err != nil {
		return nil, err
	}
	o.ReadOnly = o.ReadOnly || k.reading
	open := func() (*cassandra.Store, error) {
		return k.cluster.Open(k.ctx, NetworkStore(name), o, cassandra.Options{})
	}
	if k.patient {
		once := open
		open = func() (*cassandra.Store, error) { return AwaitLease(k.ctx, NetworkStore(name), commandWait, once) }
	}
	store, err := open()
	if err != nil {
		return nil, err
	}
	if k.keep && o.ReadOnly {
		return k.cached(name, store, o)
	}
	return store, nil
}

// cached returns a store with a cache of its rows.
func (k *Keyspace) cached(name string, s *cassandra.Store, o kv.Options) (kv.Store, error) {
	options := rowcache.Options{Bytes: o.CacheBytes}
	if k.kept.Dir != "" {
		identity, err := s.Identity(k.ctx)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		options.Disk = rowcache.DiskOptions{Dir: filepath.Join(k.kept.Dir, name), Bytes: k.kept.Bytes, Open: Open, Store: identity, Logger: slog.Default()}
	}
	cached, err := rowcache.New(k.ctx, s, options)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return cached, nil
}

// Close implements [Stores].
func (k *Keyspace) Close() error { return k.cluster.Close() }
