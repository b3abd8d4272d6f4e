// Package cassandratest starts real Cassandra nodes for tests. Cassandra's jars are in the
// folder that the variable ASHLAR_CASSANDRA names; .ci/run gets them from Maven Central.
package cassandratest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// hosts are the addresses of a running cluster, which tests use if the variable
// ASHLAR_CASSANDRA_HOSTS has them, separated by commas.
func hosts() []string {
	if list := os.Getenv("ASHLAR_CASSANDRA_HOSTS"); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// Jars returns the folder with Cassandra's jars. Without one the test is skipped, or fails if
// every test is required.
func Jars(t testing.TB) string {
	t.Helper()
	jars := os.Getenv("ASHLAR_CASSANDRA")
	if jars == "" {
		const missing = "ASHLAR_CASSANDRA is not set: no folder with Cassandra's jars"
		if os.Getenv("ASHLAR_REQUIRE_ALL") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return jars
}

// Count is the number of nodes of a test cluster.
const Count = 3

// Cluster is a running cluster on this machine. Each node has an address of its own.
type Cluster struct {
	Hosts []string

	dir         string
	jars        string
	datacenters []string // of each node; none: one for all
	more        []string // lines of the nodes' configuration
	brief       bool     // see Lazy
	nodes       []*node
}

// Start starts a cluster and waits until all nodes answer.
func Start(jars string) (*Cluster, error) { return start(Cluster{jars: jars}, Count, 0) }

// StartOne starts a cluster of one node, beside that of Start, with further lines in its
// configuration. It must not be killed and started again, see Brief of [Lazy].
func StartOne(jars string, more ...string) (*Cluster, error) {
	return start(Cluster{jars: jars, more: more, brief: true}, 1, Count)
}

// StartDatacenters starts a cluster with a node in each of some datacenters, beside those of Start
// and StartOne. They must not be killed and started again either.
func StartDatacenters(jars string, names ...string) (*Cluster, error) {
	return start(Cluster{jars: jars, datacenters: names, brief: true}, len(names), Count+1)
}

// OneAddress returns the address that the node of StartOne has.
func OneAddress() string { return address(Count) }

// address returns an address that no other process is likely to have.
func address(i int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()>>8%250, os.Getpid()%256, 1+i)
}

// start starts a cluster with so many nodes. first tells their addresses from those of
// another cluster of the process.
func start(of Cluster, count, first int) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "cassandra")
	if err != nil {
		return nil, err
	}
	c := &of
	c.dir, c.nodes = dir, make([]*node, count)
	for i := range count {
		c.Hosts = append(c.Hosts, address(first+i))
	}
	for i := range c.nodes {
		if err := errors.Join(c.configure(i), c.start(i)); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	for i := range c.nodes {
		err := c.Await(i)
		// A node ends if the first one does not answer it in time, on a busy machine.
		for again := 0; errors.Is(err, errEnded) && again < 3; again++ {
			err = c.Restart(i)
		}
		if err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	if len(c.more) == 0 { // else the nodes may demand a password
		if err := c.awaitPeers(); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// Started reports whether the nodes are those of the test, which it may end.
func (c *Cluster) Started() bool { return len(c.nodes) > 0 }

// Stop ends all nodes and removes their data.
func (c *Cluster) Stop() error {
	var failed []error
	for i, n := range c.nodes {
		if n != nil {
			failed = append(failed, c.Kill(i))
		}
	}
	return errors.Join(append(failed, os.RemoveAll(c.dir))...)
}
