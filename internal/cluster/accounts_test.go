package cluster

import (
	"testing"

	"ashlar/account/accounttest"
	"ashlar/kv"
	"ashlar/kv/cassandra"
)

// TestDeletion deletes accounts on a cluster: see also account/deletion_test.go.
func TestDeletion(t *testing.T) {
	cluster, err := cassandra.Connect(t.Context(), cassandra.Config{Hosts: nodes.Get(t).Hosts, Keyspace: newKeyspace(t)}, false)
	if err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T, name string) kv.Store {
		t.Helper()
		store, err := cluster.Open(t.Context(), name, kv.Options{}, cassandra.Options{Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		accounttest.RunDeletion(t, func(t *testing.T) kv.Store { return open(t, "killed") })
	})
	t.Run("teams", func(t *testing.T) {
		accounttest.RunTeams(t, func(t *testing.T) kv.Store { return open(t, "teams") })
	})
	t.Run("beside", func(t *testing.T) { accounttest.RunDeletionBeside(t, open(t, "beside")) })
}
