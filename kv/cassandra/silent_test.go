package cassandra_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"ashlar/kv/cassandra"
)

// A service that is stopped while it waits for nodes that accept connections and say nothing does not wait
// for each of them.
func TestConnectIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	config := cassandra.Config{Hosts: []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}}
	config.Connect(func(context.Context, string, string) (net.Conn, error) {
		if ctx.Err() != nil {
			return nil, errors.New("nobody waits for this node")
		}
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			_, _ = there.Read(make([]byte, 1)) // the driver has begun to wait for an answer
			cancel()
			<-t.Context().Done()
		}()
		return here, nil
	})
	_, err := cassandra.Connect(ctx, config, true)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped before a node answered") {
		t.Errorf("%v, expected that it was stopped before a node answered", err)
	}
}

// A node that accepts connections and says nothing is given up, with TLS too: there may be others.
func TestSilentHandshake(t *testing.T) {
	config := cassandra.Config{Hosts: []string{"127.0.0.1"}, TLS: new(tls.Config)}
	config.Connect(func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			_, _ = there.Read(make([]byte, 1<<10)) // the client's first message
			<-t.Context().Done()
		}()
		return here, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := cassandra.Connect(ctx, config, true); err == nil || ctx.Err() != nil {
		t.Errorf("%v, context: %v, expected that the node is given up before", err, ctx.Err())
	}
}
