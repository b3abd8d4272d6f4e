package app

import (
	"errors"
	"testing"

	"ashlar/account/control"
	"ashlar/app/store"
	"ashlar/kv"
)

// TestCheckpointWithoutAStore: a store that cannot be copied keeps no other one from it and is named. One that is being copied
// for the same purpose refuses all: a target takes one backup at a time.
func TestCheckpointWithoutAStore(t *testing.T) {
	opened, err := store.Dir(t.TempDir()).OpenNetwork("sound", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	stores := map[string]kv.Store{"networks/sound": opened, "networks/unable": struct{ kv.Store }{}}
	made, release, err := Checkpoint(t.Context(), stores, control.ForBackup)
	if err != nil || len(made) != 2 {
		t.Fatalf("%+v, %v", made, err)
	}
	for _, one := range made {
		if unable := one.Store == "networks/unable"; (one.Failed != "") != unable || (one.Dir == "") != unable {
			t.Errorf("%+v", one)
		}
	}
	if _, _, err := Checkpoint(t.Context(), stores, control.ForBackup); !errors.Is(err, kv.ErrCheckpoint) {
		t.Errorf("a second copy: %v, expected ErrCheckpoint", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
