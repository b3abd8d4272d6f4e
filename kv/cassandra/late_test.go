package cassandra_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Write(ctx, b); err != nil {
		t.Errorf("Write: %v", err)
	}
}
