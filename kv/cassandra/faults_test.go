package cassandra_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/kv/cassandra"
	"ashlar/kv/cassandra/cassandratest"
)

// attempts counts the attempts of statements at one node.
type attempts struct {
	mu             sync.Mutex
	all            int // attempts at any node
	asked, awaited int // at this node; those that waited until the attempt timed out
}

func (a *attempts) observe(config *cassandra.Config, node string) {
	config.Observe(func(host string, timedOut bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all++
		if host == node {
			a.asked++
			if timedOut {
				a.awaited++
			}
		}
	})
}

// reset forgets what was counted.
func (a *attempts) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all, a.asked, a.awaited = 0, 0, 0
}

// total returns the number of attempts at any node.
func (a *attempts) total() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// toNode returns the number of attempts at the node.
func (a *attempts) toNode() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// check fails if statements waited for the paused node, or went on to be sent to it. On a
// busy machine some wait, if other nodes are slower.
func (a *attempts) check(t *testing.T, what string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("%s: of %d attempts %d were sent to the paused node; %d waited for it", what, a.all, a.asked, a.awaited)
	if a.awaited > a.all/20 {
		t.Errorf("%s: %d of %d attempts waited for the paused node, expected that others answer", what, a.awaited, a.all)
	}
	if a.asked > a.all/5 { // a third, if it is asked in its turn
		t.Errorf("%s: %d of %d attempts were sent to the paused node, expected that it is asked last", what, a.asked, a.all)
	}
}

// TestPausedNode pauses a node that keeps its connections. Statements that it was asked for
// are done by others, without waiting for it, and a table is created without it.
func TestPausedNode(t *testing.T) {
	cluster := nodes.Get(t)
	if !cluster.Started() {
		t.Skip("the nodes are not the test's own")
	}
	const paused = 1
	config := configure(t, "faults")
	var sent attempts
	sent.observe(&config, cluster.Hosts[paused])
	c := connect(t, config)
	s := open(t, c, newName(t), cassandra.Options{})
	defer s.Close()
	const keys = 100
	for n := range uint64(keys) {
		put(t, s, versions, fmt.Sprint("key ", n), n, fmt.Sprint(n))
	}
	if err := cluster.Pause(paused); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Resume(paused); err != nil {
			t.Error(err)
		}
	}()

	sent.reset()
	for n := range uint64(keys) {
		key := fmt.Appendf(nil, "key %d", n)
		if value, _, err := s.Newest(t.Context(), versions, key, n+1, nil); err != nil || string(value) != fmt.Sprint(n) {
			t.Errorf("Newest of %s: %q, %v", key, value, err)
		}
		if value, err := s.Get(t.Context(), versions, key, n, nil); err != nil || string(value) != fmt.Sprint(n) {
			t.Errorf("Get of %s: %q, %v", key, value, err)
		}
	}
	if sent.toNode() == 0 {
		t.Error("no read was sent to the paused node: the test shows nothing")
	}
	sent.check(t, "reads")

	sent.reset()
	for n := range uint64(keys) {
		b := s.NewBatch()
		for row := range uint64(3) {
			b.Put(versions, fmt.Appendf(nil, "written %d", n), row, []byte("one of three"))
		}
		b.Put(versions, fmt.Appendf(nil, "written alone %d", n), n, []byte("alone"))
		b.SetPointer("head", fmt.Append(nil, n))
		if err := s.Write(t.Context(), b); err != nil {
			t.Errorf("Write %d: %v", n, err)
		}
	}
	sent.check(t, "writes") // perhaps none to the paused node, if the others have said that it is down

	// Without the paused node there is no agreement of all.
	ctx, cancel := context.WithTimeout(t.Context(), cassandra.AgreementTimeout/2)
	defer cancel()
	b := s.NewBatch()
	b.Put(&kv.Table{ID: 77, Name: "created_beside_a_paused_node", Kind: kv.Versions}, []byte("p"), 1, []byte("v"))
	if err := s.Write(ctx, b); err != nil {
		t.Errorf("a write that creates a table: %v", err)
	}
}

// TestDatacenter has the only node of a datacenter hang. A node of another datacenter has the rows too, but a quorum there is
// of its own replicas: it must not be asked.
func TestDatacenter(t *testing.T) {
	cluster, err := cassandratest.StartDatacenters(cassandratest.Jars(t), "near", "far")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := cassandra.Config{Hosts: cluster.Hosts, Keyspace: "apart", Datacenter: "near", Replication: 1}
	var sent attempts
	sent.observe(&config, cluster.Hosts[1])
	c := connect(t, config)
	const both = "ALTER KEYSPACE apart WITH replication = {'class': 'NetworkTopologyStrategy', 'near': 1, 'far': 1}"
	if err := c.Define(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	s := open(t, c, newName(t), cassandra.Options{})
	defer s.Close()
	put(t, s, versions, "p", 1, "one")

	if err := cluster.Pause(0); err != nil {
		t.Fatal(err)
	}
	b := s.NewBatch()
	b.Put(versions, []byte("p"), 2, []byte("two"))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := s.Write(ctx, b); !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write while the datacenter is away: %v, expected that it fails", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := s.CompareAndSet(ctx, "head", nil, []byte("two")); err == nil {
		t.Error("a pointer is set while the datacenter is away")
	}
	if err := cluster.Resume(0); err != nil {
		t.Fatal(err)
	}
	if n := sent.toNode(); n > 0 {
		t.Errorf("%d attempts of statements were sent to the other datacenter", n)
	}

	undecided := cassandra.Config{Hosts: cluster.Hosts, Keyspace: "apart"}
	if _, err := cassandra.Connect(t.Context(), undecided, true); err == nil || !strings.Contains(err.Error(), "replicas in the datacenters far, near (want one of these") {
		t.Errorf("without a datacenter: %v, expected that one must be chosen", err)
	}
	undecided.AcrossDatacenters = true
	connect(t, undecided)

	for _, datacenter := range []string{"nowhere", "far"} {
		config := cassandra.Config{Hosts: cluster.Hosts[:1], Keyspace: "apart", Datacenter: datacenter}
		want := fmt.Sprintf("none of the hosts that answer is in datacenter %q", datacenter)
		_, err := cassandra.Connect(t.Context(), config, true)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, expected one line with %s", err, want)
		}
		if !errors.Is(err, kv.ErrUnavailable) { // its nodes may be down
			t.Errorf("%v, expected ErrUnavailable", err)
		}
	}
}

// TestPermissions connects to a node that demands passwords and permissions: each refusal is
// one clear line.
func TestPermissions(t *testing.T) {
	node, err := cassandratest.StartOne(cassandratest.Jars(t), "authenticator: PasswordAuthenticator", "authorizer: CassandraAuthorizer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	as := func(user, password string) cassandra.Config {
		return cassandra.Config{Hosts: node.Hosts, Keyspace: "guarded", Replication: 1, User: user, Password: password}
	}
	owner := connectToNew(t, as("cassandra", "cassandra")) // the first user is created after the start
	s := open(t, owner, "store", cassandra.Options{})
	put(t, s, versions, "p", 1, "one")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, statement := range []string{
		"CREATE ROLE stranger WITH PASSWORD = 'x' AND LOGIN = true",
		"CREATE ROLE reader WITH PASSWORD = 'x' AND LOGIN = true",
		"GRANT SELECT ON KEYSPACE guarded TO reader",
	} {
		if err := owner.Define(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("%s: %v, expected one line with %q", what, err, want)
		}
	}
	_, err = cassandra.Connect(t.Context(), as("reader", "wrong"), true)
	refused("a wrong password", err, "user \"reader\" or its password is refused")
	_, err = cassandra.Connect(t.Context(), as("stranger", "x"), true)
	refused("a user without permissions", err, "permission denied: ")
	c := connect(t, as("reader", "x"))
	_, err = c.Open(t.Context(), "store", kv.Options{}, cassandra.Options{})
	refused("a writer that may only read", err, "permission denied: ")
	reading, err := c.Open(t.Context(), "store", kv.Options{ReadOnly: true}, cassandra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if value, err := reading.Get(t.Context(), versions, []byte("p"), 1, nil); err != nil || string(value) != "one" {
		t.Errorf("a reader that may read: %q, %v", value, err)
	}
}
