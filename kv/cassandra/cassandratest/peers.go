package cassandratest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// awaitPeers waits until each node answers a query and knows all others. Nodes accept connections before, and a client that
// asks one then waits too long on a busy machine, or takes it for the only node.
func (c *Cluster) awaitPeers() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for i := range c.nodes {
		if err := c.awaitPeersOf(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) awaitPeersOf(ctx context.Context, i int) error {
	for {
		known, err := c.peers(ctx, i)
		if err == nil && known == len(c.nodes)-1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %s knows %d other nodes after %v, want %d: %w", c.Hosts[i], known, startTimeout, len(c.nodes)-1, errors.Join(err, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// peers returns how many other nodes a node knows, with all that a client needs of them.
func (c *Cluster) peers(ctx context.Context, i int) (known int, err error) {
	session, err := c.connect(i)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	rows := session.Query("SELECT native_address, host_id, data_center, rack, schema_version, tokens FROM system.peers_v2").IterContext(ctx)
	for peer := map[string]any{}; rows.MapScan(peer); peer = map[string]any{} {
		complete := true
		for _, column := range peer {
			complete = complete && !reflect.ValueOf(column).IsZero()
		}
		if complete {
			known++
		}
	}
	return known, rows.Close()
}
