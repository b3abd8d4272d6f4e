package cassandra_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/kv"
	"ashlar/kv/cassandra"
)

// late is a connection whose answers come late while late is set.
type late struct {
	net.Conn
	late *atomic.Bool
}

// lateBy is longer than it takes until three nodes are asked.
const lateBy = 500 * time.Millisecond

func (l late) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if l.late.Load() {
		time.Sleep(lateBy)
	}
	return n, err
}

// TestLateAnswers has two nodes that answer late, and no third one to ask: their answers are waited for.
func TestLateAnswers(t *testing.T) {
	config := configure(t, "contract")
	down := config.Hosts[2]
	config.Hosts = config.Hosts[:2]
	var all atomic.Bool
	config.Connect(func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(address); err != nil || host == down {
			return nil, errors.New("this node is down")
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		return late{conn, &all}, err
	})
	s := open(t, connect(t, config), newName(t), cassandra.Options{})
	defer s.Close()
	put(t, s, versions, "p", 1, "one")
	all.Store(true)
	defer all.Store(false)
	if value, _, err := s.Newest(t.Context(), versions, []byte("p"), 9, nil); err != nil || string(value) != "one" {
		t.Errorf("Newest: %q, %v, expected the row", value, err)
	}
	if value, err := s.Get(t.Context(), versions, []byte("p"), 1, nil); err != nil || string(value) != "one" {
		t.Errorf("Get: %q, %v, expected the row", value, err)
	}
	b := s.NewBatch()
	for row := range uint64(3) {
		b.Put(versions, []byte("q"), row, fmt.Appendf(nil, "row %d", row))
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience) // without a deadline it would wait for ever
	defer cancel()
	if err := s.Write(ctx, b); err != nil {
		t.Errorf("Write: %v", err)
	}
}

// away is a connection that fails while away is set.
type away struct {
	net.Conn
	away *atomic.Bool
}

var errAway = errors.New("the nodes are away")

func (a away) Write(b []byte) (int, error) {
	if a.away.Load() {
		return 0, errAway
	}
	return a.Conn.Write(b)
}

// TestWriteWaits has all nodes away when a write begins: while the size of its partition is counted, for longer than a read is
// tried, or while the lease is renewed, which may have ended. Without a deadline the write waits for the nodes. A read does not,
// unless it has the patience of a test.
func TestWriteWaits(t *testing.T) {
	config := configure(t, "contract")
	var nodes atomic.Bool
	config.Connect(func(ctx context.Context, network, address string) (net.Conn, error) {
		if nodes.Load() {
			return nil, errAway
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		return away{conn, &nodes}, err
	})
	patient := config
	config.Patience(0)
	name := newName(t)
	s := open(t, connect(t, config), name, cassandra.Options{})
	defer s.Close()
	put(t, s, versions, "p", 1, "one")
	reader, err := connect(t, patient).Open(t.Context(), name, kv.Options{ReadOnly: true}, cassandra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	reads := map[*cassandra.Store]chan error{s: make(chan error, 1), reader: make(chan error, 1)}
	read := func() {
		for store, done := range reads {
			go func() {
				_, err := store.Get(t.Context(), versions, []byte("p"), 1, nil)
				done <- err
			}()
		}
	}
	readEnds := func() {
		if err := await.Receive(t, "a read", reads[s]); !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("a read while the nodes are away for longer than it is tried: %v, expected ErrUnavailable", err)
		}
	}
	for sort, c := range []struct {
		what   string
		away   time.Duration // at least
		set    func()
		before func() // the nodes are back
	}{
		{"count the size", cassandra.ReadPatience + time.Second, read, readEnds},
		{"renew the lease", cassandra.DefaultLease/2 + time.Second, s.Resume, func() {}},
	} {
		nodes.Store(true)
		c.set()
		written := make(chan error)
		go func() {
			b := s.NewBatch()
			b.Put(versions, []byte("p"), uint64(2+sort), []byte("value"))
			written <- s.Write(t.Context(), b)
		}()
		select {
		case err := <-written:
			t.Fatalf("%s: %v while the nodes are away, expected that the write waits", c.what, err)
		case <-time.After(c.away):
		}
		c.before()
		nodes.Store(false)
		if err := <-written; err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if err := await.Receive(t, "a patient read", reads[reader]); err != nil {
		t.Errorf("a read with more patience: %v", err)
	}
}

// TestRenewOnce has a lease end in the middle of a write of many rows, as if nodes had been away. One row renews it for all.
func TestRenewOnce(t *testing.T) {
	config := configure(t, "contract")
	var s *cassandra.Store
	var ended atomic.Bool
	var renewals atomic.Int64
	config.ObserveStatements(func(_ context.Context, statement string) {
		switch {
		case strings.HasPrefix(statement, "INSERT INTO "+list.Name) && !ended.Swap(true):
			s.Resume()
		case strings.Contains(statement, "USING TTL ? SET holder") && ended.Load():
			renewals.Add(1)
		}
	})
	s = open(t, connect(t, config), newName(t), cassandra.Options{})
	defer s.Close()
	b := s.NewBatch()
	for n := range uint64(500) {
		b.Put(list, fmt.Appendf(nil, "partition %d", n), 1, []byte("value"))
	}
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if n := renewals.Load(); n == 0 || n > 10 { // the usual renewals of a busy machine among them
		t.Errorf("the lease was renewed %d times, expected once", n)
	}
}
