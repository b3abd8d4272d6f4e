package cassandra_test

import (
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

// TestPausedNode pauses a node that keeps its connections. Reads that it was asked for are
// answered by others, without waiting for it.
func TestPausedNode(t *testing.T) {
	cluster := nodes.Get(t)
	if !cluster.Started() {
		t.Skip("the nodes are not the test's own")
	}
	const paused = 1
	config := configure(t, "faults")
	var mu sync.Mutex
	asked, awaited := 0, 0
	config.Observe(func(host string, timedOut bool) {
		mu.Lock()
		defer mu.Unlock()
		if host == cluster.Hosts[paused] {
			asked++
			if timedOut {
				awaited++
			}
		}
	})
	c := connect(t, config)
	s := open(t, c, newName(t), cassandra.Options{})
	defer s.Close()
	const keys = 60
	for n := range uint64(keys) {
		put(t, s, versions, fmt.Sprint("key ", n), n, fmt.Sprint(n))
	}
	if err := cluster.Pause(paused); err != nil {
		t.Fatal(err)
	}
	before := func() int { mu.Lock(); defer mu.Unlock(); return asked }()
	for n := range uint64(keys) {
		key := fmt.Appendf(nil, "key %d", n)
		if value, _, err := s.Newest(t.Context(), versions, key, n+1, nil); err != nil || string(value) != fmt.Sprint(n) {
			t.Errorf("Newest of %s: %q, %v", key, value, err)
		}
		if value, err := s.Get(t.Context(), versions, key, n, nil); err != nil || string(value) != fmt.Sprint(n) {
			t.Errorf("Get of %s: %q, %v", key, value, err)
		}
	}
	mu.Lock()
	t.Logf("of %d reads %d were sent to the paused node too; %d waited for it", 2*keys, asked-before, awaited)
	if asked == before {
		t.Error("no read was sent to the paused node: the test shows nothing")
	}
	// Without a second attempt all of them wait. On a busy machine some do, if others are slower.
	if 2*awaited > asked-before {
		t.Errorf("%d of %d reads waited for the paused node, expected that others answer", awaited, asked-before)
	}
	mu.Unlock()
	if err := cluster.Resume(paused); err != nil {
		t.Fatal(err)
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
	var owner *cassandra.Cluster
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) { // the first user is created after the start
		if owner, err = cassandra.Connect(t.Context(), as("cassandra", "cassandra"), false); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	defer owner.Close()
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
