package cassandra

import (
	"context"

	"ashlar/kv"
)

// Pause makes the store behave as that of a process that is paused: it does not renew its
// lease, and believes that it did.
func (s *Store) Pause() {
	s.stop()
	s.stopped.Wait()
	s.lease.renewed.Store(1 << 62)
}

// Resume makes the store notice how long ago it renewed its lease.
func (s *Store) Resume() { s.lease.renewed.Store(-1 << 62) }

// Parts returns the number of parts of a partition.
func (s *Store) Parts(ctx context.Context, t *kv.Table, partition []byte) (int, error) {
	starts, err := s.partsOf(ctx, t, partition)
	return len(starts) + 1, err
}

// Define changes the schema.
func (c *Cluster) Define(ctx context.Context, statement string) error {
	return c.define(ctx, c.session, statement)
}
