package cassandra_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"ashlar/kv/cassandra/cassandratest"
)

// unknowing is a connection to a node that does not know any keyspace while refusals are
// left.
type unknowing struct {
	net.Conn
	refusals *atomic.Int64
}

var errNoKeyspace = errors.New("no such keyspace")

func (c unknowing) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`USE "`)) && c.refusals.Add(-1) >= 0 {
		return 0, errNoKeyspace
	}
	return c.Conn.Write(b)
}

// TestConnectToNewKeyspace has every node refuse connections to a keyspace, as nodes do for a
// moment after another node has created it.
func TestConnectToNewKeyspace(t *testing.T) {
	config := configure(t, "new")
	var refusals atomic.Int64
	refusals.Store(cassandratest.Count) // the first connection to each
	config.Connect(func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		return unknowing{conn, &refusals}, err
	})
	connect(t, config)
	if left := refusals.Load(); left >= 0 {
		t.Errorf("%d connections were not refused, expected that connecting is tried again", left)
	}
}
