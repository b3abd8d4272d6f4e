package account_test

import (
	"math/rand/v2"
	"testing"

	"ashlar/account/accounttest"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// reopening runs a test with stores as processes find them that are started after another was
// killed, or after the power was cut.
func reopening(t *testing.T, test func(*testing.T, func(*testing.T) kv.Store)) {
	for name, kept := range map[string]int{"killed": 100, "power cut": 0, "power cut, some is written": 50} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(kept)))
			disk := pebbletest.NewDisk()
			test(t, func(t *testing.T) kv.Store {
				disk = disk.PowerCut(kept, random)
				store, err := disk.Open(pebble.Options{Path: "accounts"})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := store.Close(); err != nil {
						t.Error(err)
					}
				})
				return store
			})
		})
	}
}

// Deleting an account is completed after a kill or a power cut at any step.
func TestDeletion(t *testing.T) { reopening(t, accounttest.RunDeletion) }

// A change of a team is made completely or not at all.
func TestTeamsKilled(t *testing.T) { reopening(t, accounttest.RunTeams) }

// Two processes on one store, as on a cluster.
func TestDeletionBeside(t *testing.T) {
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	accounttest.RunDeletionBeside(t, store)
}
